"""Fastest that fits: searches, a new one from a job, and what one has found."""

from dataclasses import dataclass

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from jobs.contract.spec import TrainSpec
from jobs.forms.search import SearchForm
from jobs.live import list_version, read_open_jobs
from jobs.messages import translate, translate_with_field
from jobs.models import Job, Search
from jobs.selectors.audit import history_of
from jobs.selectors.search_words import search_words
from jobs.selectors.searches import ScreenedPoint, may_change_search, view_search, visible_searches
from jobs.selectors.study_devices import type_that_ran
from jobs.services.clone import spec_to_repeat
from jobs.services.errors import NotPossible, SpecRefused
from jobs.services.searches import create_search, possible_axes, stop_search
from jobs.views.access import person, visible_job
from jobs.views.live import team_ids
from jobs.views.rows import Chip, change_chips, chips

_MOST_LISTED = 100
_LEAST_STEPS = 200


@dataclass(frozen=True)
class ShownPoint:
    """A configuration that was screened, with its changes in chips."""

    point: ScreenedPoint
    chips: list[Chip]


@dataclass(frozen=True)
class ShownLeftOut:
    """A configuration that was never run, and why."""

    chips: list[Chip]
    why: str


@require_GET
def search_list(request: HttpRequest) -> HttpResponse:
    """The team's searches, the newest first."""
    return render(request, "searches/list.html", {"searches": visible_searches(person(request))[:_MOST_LISTED]})


def search_new(request: HttpRequest, pk: int) -> HttpResponse:
    """The form, from a job that is the base."""
    job = visible_job(request, pk)
    try:
        spec = _base(job)
    except NotPossible as error:
        messages.error(request, str(error))
        return redirect("job-detail", pk)
    possible = possible_axes(spec, job.queue)
    if request.method != "POST":
        form = SearchForm(possible=possible, initial={"axes": list(possible), "num_steps": spec.num_steps})
        return _render_form(request, form, job)
    form = SearchForm(request.POST, possible=possible)
    if not form.is_valid():
        return _render_form(request, form, job, status=422)
    return _submit(request, form, job, spec)


def _submit(request: HttpRequest, form: SearchForm, job: Job, spec: TrainSpec) -> HttpResponse:
    data = form.cleaned_data
    try:
        search = create_search(
            owner=person(request),
            team=job.team,
            queue=job.queue,
            spec=spec.model_copy(update={"num_steps": data["num_steps"], "num_epochs": None}),
            axes=form.chosen_axes,
            num_repeats=data["num_repeats"],
            memory_budget_bytes=form.memory_budget_bytes,
            loss_margin=data["loss_margin"],
            name=data["name"],
            device_names=type_that_ran(job),
        )
    except NotPossible as error:
        form.add_error(None, str(error))
    except SpecRefused as error:
        form.add_error(None, translate(error.findings[0]))
    else:
        return redirect("search", search.pk)
    return _render_form(request, form, job, status=422)


def _base(job: Job) -> TrainSpec:
    """What the job asked for, in steps."""
    asked = spec_to_repeat(job)
    ran = job.last_attempt.resolved_spec if job.last_attempt else None
    num_steps = asked.num_steps or (ran or {}).get("num_steps") or _LEAST_STEPS
    return asked.model_copy(update={"num_steps": num_steps, "num_epochs": None})


def _render_form(request: HttpRequest, form: SearchForm, job: Job, status: int = 200) -> HttpResponse:
    device = next(iter(type_that_ran(job).values()), "")
    return render(request, "searches/new.html", {"form": form, "job": job, "device": device}, status=status)


@require_GET
def search(request: HttpRequest, pk: int) -> HttpResponse:
    """How far it is and what it found; asked for by htmx, only its living part."""
    version = list_version(read_open_jobs(), team_ids(person(request)))  # before the rows, see the list of jobs
    view = view_search(_visible(request, pk))
    context = {
        "view": view,
        "search": view.search,
        "words": search_words(view),
        "unread": [translate_with_field(finding) for finding in view.search.stored_base.unread],
        "screened": [ShownPoint(point, change_chips(point.changes)) for point in view.screened],
        "left_out": [
            ShownLeftOut(change_chips(view.search.space.changes(tuple(entry["point"]))), entry["why"])
            for entry in view.search.left_out
        ],
        "best": change_chips(view.best.changes) if view.best else [],
        "base": chips(view.search.base),
        "may_change": may_change_search(person(request), view.search),
        "history": history_of(view.search),
        "version": version,
    }
    template = "searches/_search.html" if request.headers.get("HX-Request") else "searches/search.html"
    return render(request, template, context)


@require_POST
def search_stop(request: HttpRequest, pk: int) -> HttpResponse:
    """End it, and cancel what runs."""
    found = _visible(request, pk)
    if not may_change_search(person(request), found):
        raise PermissionDenied(_("Its owner or staff can do this."))
    try:
        stop_search(found, person(request), request.POST.get("reason", "")[:500])
    except NotPossible as error:
        messages.error(request, str(error))
    else:
        messages.success(request, _("The search is stopped."))
    return redirect("search", pk)


def _visible(request: HttpRequest, pk: int) -> Search:
    return get_object_or_404(visible_searches(person(request)), pk=pk)
