"""One job: what was asked, what happens, what came out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_POST

from jobs.attempt_files import AttemptFiles
from jobs.contract.findings import Finding
from jobs.contract.metrics import Summary
from jobs.contract.options import metadata
from jobs.contract.spec import TrainSpec
from jobs.contract.stored import read_stored_spec
from jobs.exports.tensorboard import can_write_tensorboard
from jobs.figures import lost_points_in_words, series_title
from jobs.forms import CompareQuery, ReasonForm
from jobs.live import list_version, plain_series, read_open_jobs
from jobs.messages import translate, translate_with_field
from jobs.models import Attempt, Job, Queue
from jobs.selectors.audit import history_of
from jobs.selectors.curves import CurveView, flushes_told, new_chunks, read_all_series, wall_before
from jobs.selectors.jobs import may_change
from jobs.selectors.operators import read_operators
from jobs.selectors.proposals import proposal_for
from jobs.selectors.starts import turn_of
from jobs.selectors.values import known_spec
from jobs.selectors.waiting import waiting_for
from jobs.services.actions import Act, Order, perform
from jobs.services.errors import NotAllowed, NotPossible
from jobs.views.access import person, visible_job
from jobs.views.live import team_ids
from jobs.views.log_text import NOTHING_FOUND, find_in_log, read_log, read_log_around
from jobs.views.rows import total_steps
from jobs.views.smoothing import smoothing_choices

_MOST_POINTS = 4000
_SPARK_POINTS = 160
_MOST_WORDS = 200  # characters that are looked for in a log

# The engine's phases in the reader's words.
_PHASES = {
    "launching": _("Starting its ranks"),
    "importing": _("Importing libraries"),
    "building": _("Building the model"),
    "first_step": _("First step, with compilation"),
    "training": _("Training"),
    "evaluating": _("Evaluating"),
    "measuring": _("Measuring the parts of a step"),
}

# The figures that stand on top of the page; the rest are in the table of measurements.
_TILES = (
    "steady_step_time_ms",
    "samples_per_s",
    "first_step_s",
    "final_train_loss",
    "final_eval_loss",
    "eval_accuracy",
    "peak_allocated_bytes",
    "peak_rss_bytes",
    "observed_dtype",
)

# Options that a reader looks for, at their defaults too; the other defaults are folded away.
_ALWAYS_TOLD = (
    "task",
    "model",
    "dataset",
    "device",
    "precision",
    "compile_mode",
    "micro_batch_size",
    "grad_accum_steps",
    "num_steps",
    "optimizer",
    "learning_rate",
    "seed",
)
_TOLD_BY_THE_CURVE = ("final_train_loss", "steady_step_time_ms", "samples_per_s")


@dataclass(frozen=True)
class SpecRow:
    """One option: what was asked for, and what it came to where that differs."""

    name: str
    label: str
    unit: str
    asked: Any
    ran: Any
    is_resolved: bool
    is_default: bool

    @property
    def is_aside(self) -> bool:
        """Whether it says nothing that is looked for: a default as it was asked for, of an option few ask about."""
        return self.is_default and not self.is_resolved and self.name not in _ALWAYS_TOLD


@dataclass(frozen=True)
class Measurement:
    """One figure of the summary."""

    name: str
    label: str
    value: Any


@dataclass(frozen=True)
class AttemptFigure:
    """One figure of several attempts, the newest first."""

    name: str
    label: str
    values: list[Any]


@require_GET
def job_detail(request: HttpRequest, pk: int) -> HttpResponse:
    """The page of a job."""
    return render(request, "jobs/job_detail.html", _context(request, visible_job(request, pk)))


@require_GET
def job_parts(request: HttpRequest, pk: int) -> HttpResponse:
    """The parts of the page that change with the job's state."""
    return job_changed(request, pk)


def _context(request: HttpRequest, job: Job) -> dict[str, Any]:
    attempt = job.last_attempt
    measured = attempt.measured if attempt else Summary()
    rows = _spec_rows(job)
    attempts = list(job.attempts.select_related("worker").prefetch_related("nodes__worker").order_by("-number"))
    return {
        "job": job,
        "attempt": attempt,
        "can_write_tensorboard": can_write_tensorboard(),
        "attempts": attempts,
        "tiles": _tiles(measured, has_ended=job.has_ended),
        "measurements": _measurements(measured),
        "spec_rows": rows,
        "num_aside": sum(row.is_aside for row in rows),
        "unread": [translate_with_field(finding) for finding in job.stored_spec.unread],
        "warnings": [translate(Finding.model_validate(item)) for item in attempt.findings] if attempt else [],
        "proposal": proposal_for(job),
        "waiting_for": waiting_for(job),
        "turn": turn_of(job),
        "total_steps": total_steps(job),
        "global_batch": read_stored_spec(known_spec(job)).spec.global_batch_size,
        "phase_text": _phase_text(attempt),
        "operators": read_operators(attempt),
        "beside": _attempts_beside(attempts),
        "reproduction": _reproduction(job),
        "tags": job.tag_names(),
        "history": history_of(job),
        "may_change": may_change(person(request), job),
        "act_queues": Queue.objects.all(),
        "cancel_form": ReasonForm(),
        "version": list_version(read_open_jobs(), team_ids(person(request))),
    } | smoothing_choices(CompareQuery.from_query(request.GET))


def _attempts_beside(attempts: Sequence[Attempt]) -> list[AttemptFigure]:
    """What several attempts measured, a row per figure; nothing to hold against each other where only one did."""
    summaries = [attempt.measured for attempt in attempts]
    if sum(summary != Summary() for summary in summaries) < 2:
        return []
    rows = [
        AttemptFigure(row.name, row.label, [getattr(summary, row.name) for summary in summaries])
        for row in _labelled(Summary(), tuple(Summary.model_fields))
    ]
    return [row for row in rows if any(value is not None for value in row.values)]


def _reproduction(job: Job) -> str:
    """Shell commands that make the same run without the web application."""
    spec = {name: value for name, value in known_spec(job).items() if name in TrainSpec.model_fields}
    files = " --artifacts artifacts" if spec.get("checkpoint_every_steps") or spec.get("profile_steps") else ""
    text = json.dumps(spec, indent=2, ensure_ascii=False)
    return f"cat > spec.json <<'END'\n{text}\nEND\npython -m workers.engine run spec.json{files}\n"


def _phase_text(attempt: Attempt | None) -> str:
    phase = attempt.phase if attempt else ""
    return str(_PHASES.get(phase, phase or _("Starting")))


def _tiles(measured: Summary, *, has_ended: bool) -> list[Measurement]:
    """What was measured; while it runs, places for what the curve can tell already."""
    known = [tile for tile in _labelled(measured, _TILES) if tile.value is not None]
    return known or ([] if has_ended else _labelled(measured, _TOLD_BY_THE_CURVE))


def _measurements(measured: Summary) -> list[Measurement]:
    return [tile for tile in _labelled(measured, tuple(Summary.model_fields)) if tile.value is not None]


def _labelled(measured: Summary, names: tuple[str, ...]) -> list[Measurement]:
    titles = {name: Summary.model_fields[name].title or name for name in names}
    return [Measurement(name, gettext(title), getattr(measured, name)) for name, title in titles.items()]


def _spec_rows(job: Job) -> list[SpecRow]:
    asked, defaults = job.spec, TrainSpec().model_dump(mode="json")
    ran = known_spec(job)
    return [
        SpecRow(
            name=name,
            label=gettext(field.title or name),
            unit=gettext(metadata(field)["unit"]) if metadata(field).get("unit") else "",
            asked=asked.get(name, defaults[name]),
            ran=ran.get(name, defaults[name]),
            is_resolved=asked.get(name, defaults[name]) != ran.get(name, defaults[name]),
            is_default=ran.get(name, defaults[name]) == defaults[name],
        )
        for name, field in TrainSpec.model_fields.items()
    ]


@require_POST
def job_cancel(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask for the end of a job; htmx gets the changed parts, so that the page stays where it is."""
    _cancel(request, visible_job(request, pk), ReasonForm(request.POST))
    return job_changed(request, pk) if request.headers.get("HX-Request") else redirect("job-detail", pk)


def job_changed(request: HttpRequest, pk: int) -> HttpResponse:
    """The parts of the page that change with the job's state, as it is now."""
    return render(request, "jobs/_job_parts.html", _context(request, visible_job(request, pk)))


def _cancel(request: HttpRequest, job: Job, form: ReasonForm) -> None:
    if not form.is_valid():
        messages.error(request, " ".join(str(text) for text in form.errors["reason"]))
        return
    try:
        job = perform(person(request), job, Order(Act.CANCEL, form.cleaned_data["reason"]))
    except (NotAllowed, NotPossible) as error:
        messages.error(request, str(error))
        return
    done = gettext("Job #%(id)s is cancelled.") if job.has_ended else gettext("Job #%(id)s is being stopped.")
    messages.success(request, done % {"id": job.pk})


@require_GET
def job_points(request: HttpRequest, pk: int) -> JsonResponse:
    """The job's points: all of them, or those `from` a step `to` another, thinned.

    With `attempt` and `after` only the chunks stored since.
    """
    attempt = visible_job(request, pk).last_attempt
    if attempt is None:
        return JsonResponse(
            {"attempt": None, "sequence": -1, "series": {}, "titles": {}, "notes": {}, "seams": [], "wall_before": 0}
        )
    after = request.GET.get("after", "")
    if _is_count(after) and request.GET.get("attempt") == str(attempt.pk):
        return JsonResponse(_points_after(attempt, int(after)))
    ends = (request.GET.get(name, "") for name in ("from", "to"))
    x_from, x_to = (int(text) if _is_count(text) else None for text in ends)
    most = _SPARK_POINTS if "spark" in request.GET else _MOST_POINTS
    return JsonResponse(_all_points(attempt, most, x_from, x_to))


def _is_count(text: str) -> bool:
    return text.isdecimal() and len(text) < 19


def _all_points(
    attempt: Attempt, max_points: int, x_from: int | None = None, x_to: int | None = None
) -> dict[str, Any]:
    """The place in the line of chunks is read first: what is stored meanwhile comes twice, and the page drops it.

    `wall_before` is what the page adds to the wall time of the points that it hears of later.
    """
    last = flushes_told([attempt.pk]).get(attempt.pk, -1)
    curves = read_all_series(attempt, max_points=max_points, x_from=x_from, x_to=x_to)
    return {
        "attempt": attempt.pk,
        "sequence": last,
        "series": {name: _plain(curve) for name, curve in curves.items()},
        "titles": {name: series_title(name) for name in curves},
        "notes": _notes(attempt.job_id, curves),
        "seams": next((curve.seams for curve in curves.values()), []),
        "wall_before": wall_before(attempt),
    }


def _notes(job_id: int, curves: Mapping[str, CurveView]) -> dict[str, str]:
    """By series, what its caption says beside what is drawn."""
    return {name: lost_points_in_words([job_id]) for name, curve in curves.items() if curve.has_lost_points}


def _points_after(attempt: Attempt, after: int) -> dict[str, Any]:
    """What was told after a flush; all of it, thinned, where flushes cannot be told apart any more."""
    chunks = new_chunks({attempt.pk: after})
    if not chunks and after < flushes_told([attempt.pk]).get(attempt.pk, -1):
        return _all_points(attempt, _MOST_POINTS)
    series: dict[str, dict[str, list[Any]]] = {}
    for chunk in chunks:
        for name, points in plain_series(chunk).items():
            known = series.setdefault(name, {"step": [], "wall": [], "y": []})
            for key, values in points.items():
                known[key] += values
    return {
        "attempt": attempt.pk,
        "sequence": chunks[-1].sequence if chunks else after,
        "series": series,
        "titles": {name: series_title(name) for name in series},
    }


def _plain(curve: CurveView) -> dict[str, list[Any]]:
    return {"step": curve.x, "wall": _finite(curve.wall_s), "y": _finite(curve.y)}


def _finite(values: list[float]) -> list[float | None]:
    return [value if -float("inf") < value < float("inf") else None for value in values]


@require_GET
def job_log(request: HttpRequest, pk: int) -> JsonResponse:
    """The end of the last attempt's log, with `offset` what was written since, with `around` the lines at a byte."""
    attempt = visible_job(request, pk).last_attempt
    if attempt is None:
        return JsonResponse({"attempt": None, "offset": 0, "text": "", "is_cut": False})
    log, offset, around = AttemptFiles(attempt.pk).log, request.GET.get("offset", ""), request.GET.get("around", "")
    same = request.GET.get("attempt") == str(attempt.pk)
    if same and _is_count(around):
        return JsonResponse({"attempt": attempt.pk} | vars(read_log_around(log, int(around))))
    part = read_log(log, int(offset) if same and _is_count(offset) else None)
    return JsonResponse({"attempt": attempt.pk} | vars(part))


@require_GET
def job_log_search(request: HttpRequest, pk: int) -> JsonResponse:
    """Where the last attempt's whole log has the words `q`."""
    attempt = visible_job(request, pk).last_attempt
    if attempt is None:
        return JsonResponse({"attempt": None} | vars(NOTHING_FOUND))
    hits = find_in_log(AttemptFiles(attempt.pk).log, request.GET.get("q", "").strip()[:_MOST_WORDS])
    return JsonResponse({"attempt": attempt.pk} | vars(hits))
