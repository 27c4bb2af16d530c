"""Studies: the list, a new one, and what one has found."""

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from jobs.contract.errors import InvalidSpec
from jobs.contract.findings import Finding
from jobs.contract.plan import StudyPlan, expand
from jobs.contract.stored import read_stored_plan
from jobs.figures.study import study_figures
from jobs.forms.spec_form import start_spec
from jobs.forms.study_form import StudyForm
from jobs.forms.submission import submit_once
from jobs.forms.variation import ExtensionForm, initial_variation
from jobs.forms.verdict import Verdict, judge
from jobs.live import list_version, read_open_jobs, study_versions
from jobs.messages import translate, translate_with_field
from jobs.models import Job, Queue, Study
from jobs.selectors.audit import history_of
from jobs.selectors.jobs import asked_spec, teams_of
from jobs.selectors.studies import StudyRow, StudyView, board_of, may_change_study, view_study, visible_studies
from jobs.selectors.study_estimates import estimate_extension, estimate_study
from jobs.selectors.study_words import headline, row_words
from jobs.services.errors import NotAllowed, NotPossible, SpecRefused
from jobs.services.studies import (
    cancel_study,
    create_study,
    extend_study,
    pause_study,
    resume_study,
    tags_of,
)
from jobs.views.ablation import shown_ablation
from jobs.views.access import person, visible_job
from jobs.views.job_form import check_context, line_context
from jobs.views.live import team_ids
from jobs.views.rows import Chip, change_chips, chips

_MOST_LISTED = 100
_START_REPEATS = 3


@dataclass(frozen=True)
class ShownRow:
    """One configuration with its changes in chips and its findings in words."""

    row: StudyRow
    chips: list[Chip]
    words: str
    jobs: str  # ids for the comparison


@dataclass(frozen=True)
class LeftOut:
    """A configuration that the rules refused, and why."""

    chips: list[Chip]
    sentences: list[str]


@require_GET
def study_list(request: HttpRequest) -> HttpResponse:
    """The team's studies, the newest first."""
    return render(request, "studies/list.html", {"studies": visible_studies(person(request))[:_MOST_LISTED]})


def study_new(request: HttpRequest) -> HttpResponse:
    """The form; what is wrong comes back at its field, with nothing lost."""
    if request.method != "POST":
        source = visible_job(request, _number(request, "from")) if _number(request, "from") else None
        cloned = _visible(request, _number(request, "study")) if _number(request, "study") else None
        initial = _initial(request, source) | (_initial_of(cloned) if cloned else {})
        return _render_form(request, StudyForm(user=person(request), initial=initial), source=source, cloned=cloned)
    form = StudyForm(request.POST, user=person(request))
    return _submit(request, form) if form.is_valid() else _render_form(request, form, status=422)


@require_POST
def study_check(request: HttpRequest) -> HttpResponse:
    """What the study would be as the form stands: its runs, what they take, and what the workers say to the base."""
    form = StudyForm(request.POST, user=person(request))
    form.full_clean()
    queue, team = form.cleaned_data.get("queue"), form.cleaned_data.get("team")
    verdict = form.verdict or judge(form.asked(), queue)
    estimate = estimate_study(form.plan, queue, team) if form.found and form.plan and queue and team else None
    left_out = [_left_out(one.changes, findings) for one, findings in estimate.left_out] if estimate else []
    context = {"form": form, "study_estimate": estimate, "left_out": left_out} | check_context(form, verdict)
    return render(request, "studies/_check.html", context | line_context(verdict, queue, person(request)))


def _submit(request: HttpRequest, form: StudyForm) -> HttpResponse:
    user, data = person(request), form.cleaned_data
    about = {"owner": user, "team": data["team"], "queue": data["queue"], "tags": data["tags"]}
    try:
        made, is_new = submit_once(
            request, user, form, Study, lambda: create_study(plan=form.study_plan, name=data["job_name"], **about)
        )
    except SpecRefused as error:
        for finding in error.findings:
            form.add_error(finding.field if finding.field in form.fields else None, translate(finding))
        return _render_form(request, form, status=422)
    if not is_new:
        messages.info(request, _("This form was sent twice; it made one study."))
    return redirect("study", made.pk)


def _number(request: HttpRequest, name: str) -> int:
    text = request.GET.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


def _initial_of(cloned: Study) -> dict[str, Any]:
    """What a form holds that asks for a study once more, as far as there are options for it."""
    plan = read_stored_plan(cloned.plan).plan
    own = {
        "job_name": cloned.name,
        "queue": cloned.queue,
        "team": cloned.team,
        "tags": ", ".join(tags_of(cloned)),
    }
    return {"num_steps": None} | plan.base | own | initial_variation(plan)


def _initial(request: HttpRequest, source: Job | None) -> dict[str, Any]:
    teams = teams_of(person(request))
    own = {
        "submission": uuid.uuid4(),
        "team": source.team if source else teams.filter(members=person(request)).first() or teams.first(),
        "queue": source.queue if source else Queue.objects.filter(name="default").first() or Queue.objects.first(),
        "num_repeats": _START_REPEATS,
    }
    return own | start_spec() | (asked_spec(source) if source else {})


def _render_form(
    request: HttpRequest,
    form: StudyForm,
    source: Job | None = None,
    cloned: Study | None = None,
    status: int = 200,
) -> HttpResponse:
    verdict = form.verdict or judge(form.initial_spec(), form.initial.get("queue"))
    unread = read_stored_plan(cloned.plan).unread if cloned else source.stored_spec.unread if source else []
    about = {"source": source, "cloned": cloned, "unread": unread_words(unread)}
    context = {"form": form, "has_teams": teams_of(person(request)).exists()} | about
    return render(request, "studies/form.html", context | check_context(form, verdict), status=status)


@require_GET
def study(request: HttpRequest, pk: int) -> HttpResponse:
    """What a study has found; asked for by htmx, only its living part."""
    version = list_version(read_open_jobs(), team_ids(person(request)))  # before the rows, see the list of jobs
    study_version = study_versions([pk])[pk]
    view = view_study(_visible(request, pk))
    context = {
        "view": view,
        "study": view.study,
        "unread": unread_words(view.unread),
        "base": chips(view.plan.base),
        "rows": [shown_row(row) for row in view.rows],
        "ablation": shown_ablation(view),
        "left_out": shown_left_out(view.study),
        "share_link": _share_link(request, view.study),
        "headline": headline(view),
        "compare": _compared(view),
        "board": board_of(view),
        "figures": study_figures(view),
        "may_change": may_change_study(person(request), view.study),
        "history": history_of(view.study),
        "version": version,
        "study_version": study_version,
    }
    template = "studies/_study.html" if request.headers.get("HX-Request") else "studies/study.html"
    return render(request, template, context)


@require_POST
def study_cancel(request: HttpRequest, pk: int) -> HttpResponse:
    """End every run that has not ended."""

    def cancel(found: Study) -> str:
        results = cancel_study(found, person(request), request.POST.get("reason", ""))
        done = sum(not result.error for result in results)
        return ngettext("%(n)s run is cancelled.", "%(n)s runs are cancelled.", done) % {"n": done}

    return act_on_study(request, pk, cancel)


@require_POST
def study_pause(request: HttpRequest, pk: int) -> HttpResponse:
    """Hold the runs that wait."""

    def pause(found: Study) -> str:
        pause_study(found, person(request), request.POST.get("reason", ""))
        return _("The study is paused; what runs goes on.")

    return act_on_study(request, pk, pause)


@require_POST
def study_resume(request: HttpRequest, pk: int) -> HttpResponse:
    """Let its runs start again."""

    def resume(found: Study) -> str:
        resume_study(found, person(request))
        return _("The study goes on.")

    return act_on_study(request, pk, resume)


def study_extend(request: HttpRequest, pk: int) -> HttpResponse:
    """More repeats, values or configurations for a study that is there."""
    found = _changeable(request, pk)
    plan = _plan_to_extend(found)
    if plan is None:
        messages.error(request, _("This version cannot read all of its plan, so nothing can be added to it. Clone it."))
        return redirect("study", pk)
    form = ExtensionForm(request.POST if request.method == "POST" else None, plan=plan)
    if form.is_bound and form.is_valid():
        num_left_out = len(found.left_out)
        try:
            added = extend_study(found, person(request), form.extension)
        except SpecRefused as error:
            form.tell(error.findings)
        except NotPossible as error:
            messages.error(request, str(error))
            return redirect("study", pk)
        else:
            messages.success(request, _added_words(added, len(found.left_out) - num_left_out))
            return redirect("study", pk)
    context = {"form": form, "study": found, "verdict": Verdict(None, []), "notes": {}, "repeated": ()}
    return render(request, "studies/extend.html", context, status=422 if form.errors else 200)


def _added_words(num_added: int, num_refused: int) -> str:
    """What came of an extension."""
    if num_added:
        return ngettext("%(n)s run is queued on top.", "%(n)s runs are queued on top.", num_added) % {"n": num_added}
    if num_refused:
        return _("Nothing is queued: the rules refuse what is new. The study says why.")
    return _("The study has all of that already.")


@require_POST
def study_extend_check(request: HttpRequest, pk: int) -> HttpResponse:
    """What would come on top as the form stands: the runs, and what they take."""
    found = _changeable(request, pk)
    plan = _plan_to_extend(found)
    if plan is None:
        raise Http404
    form = ExtensionForm(request.POST, plan=plan)
    told = estimate_extension(found, form.extension) if form.is_valid() else None
    left_out = [_left_out(one.changes, findings) for one, findings in told.left_out] if told else []
    return render(request, "studies/_extension.html", {"form": form, "study_estimate": told, "left_out": left_out})


def _plan_to_extend(found: Study) -> StudyPlan | None:
    """None where this version cannot read all of it."""
    try:
        plan = found.study_plan
        expand(plan)
    except InvalidSpec:
        return None
    return plan


def act_on_study(request: HttpRequest, pk: int, act: Callable[[Study], str]) -> HttpResponse:
    """Do it to a study that the reader sees, say what came of it, and go back to its page."""
    try:
        messages.success(request, act(_visible(request, pk)))
    except NotAllowed as error:
        raise PermissionDenied(str(error)) from error
    except NotPossible as error:
        messages.error(request, str(error))
    return redirect("study", pk)


def _visible(request: HttpRequest, pk: int) -> Study:
    return get_object_or_404(visible_studies(person(request)), pk=pk)


def _changeable(request: HttpRequest, pk: int) -> Study:
    """A study that the reader may change, not only see."""
    found = _visible(request, pk)
    if not may_change_study(person(request), found):
        raise PermissionDenied(_("This study is not yours. Its owner or staff can do this."))
    return found


def shown_row(row: StudyRow) -> ShownRow:
    """A row as a page shows it."""
    ids = ",".join(str(job.pk) for job in row.jobs)
    return ShownRow(row, change_chips(row.configuration.changes), row_words(row), ids)


def unread_words(findings: Iterable[Finding]) -> list[str]:
    """What this version cannot read, each with the name of its field."""
    return [translate_with_field(finding) for finding in findings]


def shown_left_out(study: Study) -> list[LeftOut]:
    """What the rules refused, as a page shows it."""
    return [_left_out(entry["changes"], map(Finding.model_validate, entry["findings"])) for entry in study.left_out]


def _share_link(request: HttpRequest, study: Study) -> str:
    """The whole address of its report, empty where it is not shared."""
    return request.build_absolute_uri(reverse("report", args=[study.share_token])) if study.share_token else ""


def _left_out(changes: dict[str, Any], findings: Iterable[Finding]) -> LeftOut:
    return LeftOut(change_chips(changes), [translate(finding) for finding in findings])


def _compared(view: StudyView) -> str:
    """All runs that have begun, for the comparison."""
    return ",".join(str(job.pk) for row in view.rows for job in row.jobs if job.last_attempt_id)
