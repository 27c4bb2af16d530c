"""A new job: the form, its check while it is filled in, and the submission."""

import uuid
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from jobs.contract.spec import TrainSpec
from jobs.forms import SpecForm
from jobs.forms.spec_form import start_spec
from jobs.forms.submission import submit_once
from jobs.forms.verdict import Verdict, judge
from jobs.messages import translate, translate_with_field
from jobs.models import Job, Queue, SpecEstimate, User
from jobs.selectors.jobs import asked_spec, teams_of
from jobs.selectors.line import count_up_to, waiting_in
from jobs.selectors.measured import already_measured
from jobs.selectors.starts import estimate_start
from jobs.services.errors import SpecRefused
from jobs.services.estimates import still_want, want_estimate
from jobs.services.submit import submit_job
from jobs.views.access import person, visible_job


def job_new(request: HttpRequest) -> HttpResponse:
    """The form; what is wrong comes back at its field, with nothing lost."""
    user = person(request)
    if request.method == "POST":
        form = SpecForm(request.POST, user=user)
        return _submit(request, form) if form.is_valid() else _render(request, form, status=422)
    source = visible_job(request, int(request.GET["from"])) if request.GET.get("from", "").isdecimal() else None
    return _render(request, SpecForm(user=user, initial=_initial(user, source)), source=source)


def _initial(user: User, source: Job | None) -> dict[str, Any]:
    team = source.team if source else teams_of(user).filter(members=user).first() or teams_of(user).first()
    queue = source.queue if source else Queue.objects.filter(name="default").first() or Queue.objects.first()
    own = {"submission": uuid.uuid4(), "team": team, "queue": queue, "job_name": source.name if source else ""}
    if source:
        own["tags"] = ", ".join(source.tag_names())
    return own | start_spec() | (asked_spec(source) if source else {})


def _render(request: HttpRequest, form: SpecForm, source: Job | None = None, status: int = 200) -> HttpResponse:
    verdict = form.verdict or judge(form.initial_spec(), form.initial.get("queue"))
    context: dict[str, Any] = {"form": form, "source": source, "has_teams": teams_of(person(request)).exists()}
    context["unread"] = [translate_with_field(finding) for finding in source.stored_spec.unread] if source else []
    context |= check_context(form, verdict) | line_context(verdict, form.initial.get("queue"), person(request))
    return render(request, "jobs/job_form.html", context, status=status)


def _submit(request: HttpRequest, form: SpecForm) -> HttpResponse:
    user, data = person(request), form.cleaned_data
    try:
        job, is_new = submit_once(
            request,
            user,
            form,
            Job,
            lambda: submit_job(
                owner=user,
                team=data["team"],
                queue=data["queue"],
                spec=form.spec,
                name=data["job_name"],
                tags=data["tags"],
            ),
        )
    except SpecRefused as error:
        for finding in error.findings:
            form.add_error(finding.field if finding.field in form.fields else None, translate(finding))
        return _render(request, form, status=422)
    if not is_new:
        messages.info(request, _("This form was sent twice; it made one job."))
    return redirect("job-detail", job.pk)


@require_POST
def job_check(request: HttpRequest) -> HttpResponse:
    """What the workers say to the form as it stands: notes for every field, and the summary."""
    form = SpecForm(request.POST, user=person(request))
    queue = _queue(request.POST.get("queue", ""))
    verdict = judge(form.asked(), queue)
    context = check_context(form, verdict) | line_context(verdict, queue, person(request))
    return render(request, "jobs/_job_check.html", {"form": form} | context)


def line_context(verdict: Verdict, queue: Queue | None, user: User) -> dict[str, Any]:
    """How many wait in the queue, when a job would start that is submitted now, and whether it was measured before."""
    if queue is None:
        return {}
    spec = verdict.spec.model_dump(mode="json") if verdict.spec and verdict.able else None
    return {
        "num_waiting": count_up_to(waiting_in(queue.pk)),
        "starts_in_s": estimate_start(spec, queue, user.pk) if spec else None,
        "measured": already_measured(verdict.spec, user) if verdict.spec else None,
    }


@require_GET
def job_estimate(request: HttpRequest, key: str) -> HttpResponse:
    """The answer to a form's question what a job would need, as far as it has arrived."""
    person(request)
    estimate = still_want(key)
    if estimate is None:
        raise Http404
    return render(request, "jobs/_estimate.html", {"estimate": estimate})


def _queue(value: str) -> Queue | None:
    return Queue.objects.filter(pk=int(value)).first() if value.isdecimal() and len(value) < 19 else None


def _repeated(reasons: dict[str, str]) -> set[str]:
    """Options whose reason already stands at one before: shown once, read out at each."""
    first = {reason: name for name, reason in reversed(reasons.items())}
    return {name for name, reason in reasons.items() if first[reason] != name}


def _count_samples(spec: TrainSpec | None) -> int | None:
    """How many samples the job will see; None where that depends on the data set's size."""
    if spec is None or spec.num_steps is None or not spec.drop_last:
        return None
    return spec.global_batch_size * spec.num_steps


def _estimate(form: SpecForm, verdict: Verdict) -> SpecEstimate | None:
    """What the job would need, or the question to a worker; None while there is nothing that could run."""
    if verdict.spec is None or verdict.refused or not verdict.able:
        return None
    queue = _queue(str(form["queue"].value() or ""))
    return want_estimate(verdict.spec, queue) if queue else None


def check_context(form: SpecForm, verdict: Verdict) -> dict[str, Any]:
    """What notes and summary show."""
    notes: dict[str, list[tuple[str, str]]] = {}
    for finding in verdict.findings:
        notes.setdefault(finding.field, []).append((finding.severity.value, translate(finding)))
    labels = {name: str(field.label) for name, field in form.fields.items()}
    return {
        "verdict": verdict,
        "repeated": _repeated(verdict.aside),
        "notes": notes,
        "remarks": [
            (severity, name, labels.get(name, name), text) for name, items in notes.items() for severity, text in items
        ],
        "samples": _count_samples(verdict.spec),
        "estimate": _estimate(form, verdict),
    }
