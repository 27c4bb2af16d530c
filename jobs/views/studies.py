"""Studies: the list, a new one, and what one has found."""

import uuid
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from jobs.contract.findings import Finding
from jobs.contract.spec import TrainSpec
from jobs.forms.spec_form import start_spec
from jobs.forms.study_form import StudyForm
from jobs.forms.submission import submit_once
from jobs.forms.verdict import judge
from jobs.live import list_version, read_open_jobs
from jobs.messages import translate
from jobs.models import Job, Queue, Study
from jobs.selectors.jobs import asked_spec, teams_of
from jobs.selectors.studies import StudyRow, StudyView, may_change_study, view_study, visible_studies
from jobs.selectors.study_words import headline, row_words
from jobs.services.errors import SpecRefused
from jobs.services.studies import cancel_study, create_study
from jobs.views.access import person, visible_job
from jobs.views.job_form import check_context
from jobs.views.live import team_ids
from jobs.views.rows import Chip, chips

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
        source = visible_job(request, int(request.GET["from"])) if request.GET.get("from", "").isdecimal() else None
        return _render_form(request, StudyForm(user=person(request), initial=_initial(request, source)), source=source)
    form = StudyForm(request.POST, user=person(request))
    return _submit(request, form) if form.is_valid() else _render_form(request, form, status=422)


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


def _initial(request: HttpRequest, source: Job | None) -> dict[str, Any]:
    teams = teams_of(person(request))
    own = {
        "submission": uuid.uuid4(),
        "team": source.team if source else teams.filter(members=person(request)).first() or teams.first(),
        "queue": source.queue if source else Queue.objects.filter(name="default").first() or Queue.objects.first(),
        "num_repeats": _START_REPEATS,
    }
    return own | start_spec() | (asked_spec(source) if source else {})


def _render_form(request: HttpRequest, form: StudyForm, source: Job | None = None, status: int = 200) -> HttpResponse:
    verdict = form.verdict or judge(form.initial_spec(), form.initial.get("queue"))
    context = {"form": form, "source": source, "has_teams": teams_of(person(request)).exists()}
    return render(request, "studies/form.html", context | check_context(form, verdict), status=status)


@require_GET
def study(request: HttpRequest, pk: int) -> HttpResponse:
    """What a study has found; asked for by htmx, only its living part."""
    version = list_version(read_open_jobs(), team_ids(person(request)))  # before the rows, see the list of jobs
    view = view_study(_visible(request, pk))
    context = {
        "view": view,
        "study": view.study,
        "base": chips(view.plan.base),
        "rows": [_shown(row) for row in view.rows],
        "left_out": [_left_out(entry) for entry in view.study.left_out],
        "headline": headline(view),
        "compare": _compared(view),
        "may_change": may_change_study(person(request), view.study),
        "version": version,
    }
    template = "studies/_study.html" if request.headers.get("HX-Request") else "studies/study.html"
    return render(request, template, context)


@require_POST
def study_cancel(request: HttpRequest, pk: int) -> HttpResponse:
    """End every run that has not ended."""
    found = _visible(request, pk)
    if not may_change_study(person(request), found):
        raise PermissionDenied(_("Its owner or staff can do this."))
    results = cancel_study(found, person(request), request.POST.get("reason", ""))
    done = sum(not result.error for result in results)
    messages.success(request, ngettext("%(n)s run is cancelled.", "%(n)s runs are cancelled.", done) % {"n": done})
    return redirect("study", pk)


def _visible(request: HttpRequest, pk: int) -> Study:
    return get_object_or_404(visible_studies(person(request)), pk=pk)


def _shown(row: StudyRow) -> ShownRow:
    ids = ",".join(str(job.pk) for job in row.jobs)
    return ShownRow(row, _chips(row.configuration.changes), row_words(row), ids)


def _left_out(entry: dict[str, Any]) -> LeftOut:
    findings = [Finding.model_validate(finding) for finding in entry["findings"]]
    return LeftOut(_chips(entry["changes"]), [translate(finding) for finding in findings])


def _chips(changes: dict[str, Any]) -> list[Chip]:
    """What a configuration changes; a change back to a default is one too."""
    return [Chip(name, _(TrainSpec.model_fields[name].title or name), value) for name, value in changes.items()]


def _compared(view: StudyView) -> str:
    """All runs that have begun, for the comparison."""
    return ",".join(str(job.pk) for row in view.rows for job in row.jobs if job.last_attempt_id)
