"""Curves of one job, and several jobs held against each other."""

from dataclasses import replace
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
from jobs.figures import compared_figures, overlay_figure
from jobs.models import Job, User
from jobs.selectors.columns import CONFIGURATION, is_field
from jobs.selectors.compared import MOST_JOBS, compare_columns
from jobs.selectors.comparison import DiffRow, MetricRow
from jobs.selectors.curves import MIN_POINTS, empty_curve, read_curve, series_names
from jobs.selectors.jobs import visible_jobs
from jobs.selectors.overlay import Axis, Overlay, View, overlay
from jobs.statistics import Band, Verdict

router = Router(tags=["curves"])

# As many as the page compares.
MAX_COMPARED = MOST_JOBS


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
    """Which jobs, by which curve, held against which baseline."""

    jobs: str = Field(description="Numbers of jobs, separated by commas; at most 200.", examples=["1,2,3"])
    series: str = Field("train_loss", max_length=100, description="The curve to draw.")
    baseline: int | None = Field(None, ge=1, le=2**63 - 1, description="One of the jobs; figures are held against it.")
    group: str = Field(
        "",
        max_length=100,
        description="A field that jobs of a group agree in, or `configuration` for repeats of the same one.",
    )
    band: Band = Field(Band.STANDARD_DEVIATION, description="What a group's spread is.")


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


class SpreadOut(Schema):
    """The mean of a group's repeats and the ends of its band."""

    mean: float
    low: float
    high: float
    n: int


class IntervalOut(Schema):
    """The geometric mean of paired ratios to the baseline with its 99 % t-interval."""

    ratio: float
    low: float
    high: float
    half_width: float  # of the 95 % interval, as a fraction of the ratio
    n: int  # pairs


class CellOut(Schema):
    """One figure of one column; what is held against the baseline is null in the baseline's own and without one."""

    value: Any
    spread: SpreadOut | None
    delta: float | None
    ratio: float | None
    interval: IntervalOut | None
    verdict: Verdict | None
    is_better: bool | None
    is_best: bool


class CellRowOut(Schema):
    """A cell for each column."""

    name: str
    cells: list[CellOut]


class ColumnOut(Schema):
    """A job, or the jobs that a group holds together."""

    label: str
    jobs: list[int]
    is_baseline: bool


class CompareOut(Schema):
    """Every list of values runs along `jobs`, every list of cells along `columns`; `figures` are Plotly's."""

    jobs: list[ComparedJob]
    series: str
    diff: list[DiffOut]
    circumstances: list[DiffOut]
    metrics: list[MetricOut]
    columns: list[ColumnOut]
    cells: list[CellRowOut]
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
    """Where jobs differ, what each measured, against a baseline and in groups if asked, and the figures of both."""
    jobs = _jobs_of(asker(request), _parse_ids(query.jobs))
    _check(query, jobs)
    compared = compare_columns(jobs, group=query.group, legend="", baseline=query.baseline, band=query.band)
    view = View(query.series, group=query.group, band=query.band)
    by_step, by_wall = overlay(jobs, view), overlay(jobs, replace(view, x=Axis.WALL))
    return CompareOut(
        jobs=[_job_out(job, by_step) for job in jobs],
        series=query.series,
        diff=[_diff_out(row) for row in compared.comparison.diff],
        circumstances=[_diff_out(row) for row in compared.comparison.circumstances],
        metrics=[_metric_out(row) for row in compared.comparison.metrics],
        columns=[
            ColumnOut(label=column.label, jobs=column.job_ids, is_baseline=column is compared.baseline)
            for column in compared.columns
        ],
        cells=[
            CellRowOut(
                name=row.metric.name, cells=[CellOut.model_validate(cell, from_attributes=True) for cell in row.cells]
            )
            for row in compared.rows
        ],
        figures={"curve_by_step": overlay_figure(by_step), "curve_by_wall_s": overlay_figure(by_wall)}
        | compared_figures(compared),
    )


def _check(query: CompareQuery, jobs: list[Job]) -> None:
    if query.baseline is not None and query.baseline not in [job.pk for job in jobs]:
        raise refusal("baseline", "not_compared", _("Must be one of the jobs."))
    if query.group and query.group != CONFIGURATION and not is_field(query.group):
        raise refusal("group", "unknown_field", _("Must be a field of jobs, or “configuration”."))


def _job_out(job: Job, seen: Overlay) -> ComparedJob:
    return ComparedJob(
        id=job.pk,
        title=job.title,
        state=State(job.state),
        outcome=Outcome(job.outcome) if job.outcome else None,
        note=seen.notes.get(job.pk, ""),
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
