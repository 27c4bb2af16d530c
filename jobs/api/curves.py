"""Curves of one job, and several jobs held against each other."""

from typing import Any

import ninja
from django.http import Http404, HttpRequest, HttpResponse
from ninja import Router, Schema
from pydantic import Field

from jobs.api.auth import asker
from jobs.api.errors import ErrorsOut, refusal
from jobs.api.jobs import visible_job
from jobs.api.queries import Query
from jobs.api.render import render_bytes
from jobs.contract.messages import gettext_noop as _
from jobs.contract.states import Outcome, State
from jobs.figures import comparison_figures
from jobs.models import Job, User
from jobs.selectors.comparison import DiffRow, MetricRow, compare
from jobs.selectors.curves import MIN_POINTS, empty_curve, read_curve, series_names
from jobs.selectors.jobs import visible_jobs

router = Router(tags=["curves"])

# More lines than this cannot be told apart.
MAX_COMPARED = 24


class CurveQuery(Query):
    """Which part of a curve, and how finely."""

    max_points: int | None = Field(None, ge=MIN_POINTS, le=10_000_000, description="Thin the curve to about as many.")
    x_from: int | None = Field(None, ge=-(2**63), le=2**63 - 1, description="First step, included.")
    x_to: int | None = Field(None, ge=-(2**63), le=2**63 - 1, description="Last step, included.")


class CurveOut(Schema):
    """One series; the lists are equally long."""

    series: str
    x: list[int]  # optimizer steps, from 1
    wall_s: list[float]  # seconds since the first step began
    y: list[float]
    level: str  # full, or minmaxlttb where points were left out
    num_points_total: int  # stored points in the range
    seams: list[int]  # last steps before an attempt went on from a checkpoint


class CompareQuery(Query):
    """Which jobs, and by which curve."""

    jobs: str = Field(description="Numbers of jobs, separated by commas.", examples=["1,2,3"])
    series: str = Field("train_loss", max_length=100, description="The curve to draw.")


class ComparedJob(Schema):
    """A job in a comparison; `note` says why its curve is empty."""

    id: int
    title: str
    state: State
    outcome: Outcome | None
    note: str


class DiffOut(Schema):
    """One thing in which the jobs differ, with a value per job."""

    field: str
    label: str
    unit: str
    values: list[Any]


class MetricOut(Schema):
    """One figure, with a value per job; `best` is the index of the best one, null where there is none."""

    name: str
    label: str
    unit: str
    better: str
    values: list[Any]
    best: int | None


class CompareOut(Schema):
    """Every list of values runs along `jobs`; `figures` are Plotly's."""

    jobs: list[ComparedJob]
    series: str
    diff: list[DiffOut]
    circumstances: list[DiffOut]
    metrics: list[MetricOut]
    figures: dict[str, dict[str, Any]]


@router.get(
    "/jobs/{int:job_id}/curves/{series}",
    response={200: CurveOut, 401: ErrorsOut, 404: ErrorsOut, 422: ErrorsOut},
    summary="Read a curve",
)
def get_curve(request: HttpRequest, job_id: int, series: str, query: ninja.Query[CurveQuery]) -> Any:
    """A series of the job's last attempt; empty while it may still come, 404 where the job ended without it."""
    job = visible_job(request, job_id)
    attempt = job.last_attempt
    curve = read_curve(attempt, series, **query.model_dump()) if attempt else empty_curve(series)
    if not curve.x and job.has_ended and not (attempt and series in series_names(attempt)):
        raise Http404
    # Written as it is: to validate a hundred thousand numbers that we stored ourselves takes longer than to read them.
    return HttpResponse(render_bytes(vars(curve)), content_type="application/json; charset=utf-8")


@router.get(
    "/compare", response={200: CompareOut, 401: ErrorsOut, 404: ErrorsOut, 422: ErrorsOut}, summary="Compare jobs"
)
def compare_jobs(request: HttpRequest, query: ninja.Query[CompareQuery]) -> CompareOut:
    """Where jobs differ, what each measured, and the figures of both."""
    comparison = compare(_jobs_of(asker(request), _parse_ids(query.jobs)), query.series)
    return CompareOut(
        jobs=[
            ComparedJob(
                id=job.pk,
                title=job.title,
                state=State(job.state),
                outcome=Outcome(job.outcome) if job.outcome else None,
                note=compared.note,
            )
            for job, compared in zip(comparison.jobs, comparison.curves, strict=True)
        ],
        series=comparison.series,
        diff=[_diff_out(row) for row in comparison.diff],
        circumstances=[_diff_out(row) for row in comparison.circumstances],
        metrics=[_metric_out(row) for row in comparison.metrics],
        figures=comparison_figures(comparison),
    )


def _parse_ids(text: str) -> list[int]:
    """Numbers in the order given, each once; raises `InvalidRequest` for `jobs`."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isascii() and part.isdigit() and len(part) < 19 for part in parts):
        raise refusal("jobs", "bad_numbers", _("Must be numbers of jobs, separated by commas."))
    ids = list(dict.fromkeys(int(part) for part in parts))
    if len(ids) > MAX_COMPARED:
        raise refusal("jobs", "too_many", _("At most %(limit)s jobs can be compared at once."), limit=MAX_COMPARED)
    return ids


def _jobs_of(user: User, ids: list[int]) -> list[Job]:
    """The jobs in the order of `ids`; 404 where the user may not see one of them."""
    jobs = visible_jobs(user).in_bulk(ids)
    if len(jobs) < len(ids):
        raise Http404
    return [jobs[job_id] for job_id in ids]


def _diff_out(row: DiffRow) -> DiffOut:
    return DiffOut(field=row.field, label=row.label, unit=row.unit, values=row.values)


def _metric_out(row: MetricRow) -> MetricOut:
    return MetricOut(
        name=row.name, label=row.label, unit=row.unit, better=row.better.value, values=row.values, best=row.best
    )
