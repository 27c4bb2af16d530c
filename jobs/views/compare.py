"""Jobs beside each other: the page, and what its charts fetch."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext
from django.views.decorators.http import require_GET

from jobs.contract.metrics import Better, Summary
from jobs.figures import (
    axis_title,
    compared_figures,
    is_lower_better,
    over_time_figures,
    overlay_figure,
    series_title,
)
from jobs.figures.series import AXIS_TITLES
from jobs.forms import CompareQuery
from jobs.forms.compare import MOST_SERIES
from jobs.models import Job, ViewPage
from jobs.selectors.columns import CONFIGURATION, Column, field_choices
from jobs.selectors.comparable import comparability
from jobs.selectors.compared import MOST_JOBS, Compared, compare_columns, known_series
from jobs.selectors.jobs import visible_jobs
from jobs.selectors.over_time import over_time
from jobs.selectors.overlay import at_best_step, overlay
from jobs.statistics import Band
from jobs.views.access import person
from jobs.views.saved_views import views_menu
from jobs.views.smoothing import smoothing_choices

# More sentences of one kind than these are counted.
_MOST_NOTES = 6


@dataclass(frozen=True)
class Run:
    """One compared job, with the address of the comparison without it and of the one with it as the baseline."""

    job: Job
    others: str
    pinned: str
    is_baseline: bool
    place: int


@dataclass(frozen=True)
class Asked:
    """What a request asks for, and the jobs that are there to be seen."""

    query: CompareQuery
    jobs: list[Job]
    remarks: list[str]


@require_GET
def compare_page(request: HttpRequest) -> HttpResponse:
    """The comparison that the address names; what cannot be shown is said in words. htmx gets the tables alone."""
    asked = _asked(request)
    if request.headers.get("HX-Request"):
        return render(request, "jobs/_compare_tables.html", _tables(asked))
    context = _page(request, asked) | (_tables(asked) if asked.jobs else {})
    return render(request, "jobs/compare.html", context)


@require_GET
def compare_curves(request: HttpRequest) -> JsonResponse:
    """The curves as figures, cut to the range that is seen: what the page fetches on opening, on zoom and live."""
    asked = _asked(request)
    figures, notes = [], []
    for series in asked.query.series:
        seen = overlay(asked.jobs, asked.query.view(series))
        figures.append(overlay_figure(seen, x_log=asked.query.x_log, y_log=asked.query.y_log))
        notes.append(_counted(list(seen.notes.values())))
    answer = {"figures": figures, "notes": notes, "remarks": asked.remarks, "open": _open_ids(asked.jobs)}
    return JsonResponse(answer, json_dumps_params={"separators": (",", ":")})


@require_GET
def compare_charts(request: HttpRequest) -> JsonResponse:
    """Every other chart by its name, where it can be drawn; `metrics` are what the scatter can show."""
    asked = _asked(request)
    compared = _compared(asked)
    figures = compared_figures(compared, asked.query.across, asked.query.up)
    answer = {"figures": figures, "metrics": _metric_choices(compared)}
    return JsonResponse(answer, json_dumps_params={"separators": (",", ":")})


@require_GET
def compare_over_time(request: HttpRequest) -> JsonResponse:
    """Memory and devices over wall time as figures by their names; `from` and `to` are seconds."""
    asked = _asked(request)
    figures = over_time_figures(over_time(asked.jobs, asked.query.view("")))
    return JsonResponse({"figures": figures}, json_dumps_params={"separators": (",", ":")})


@require_GET
def compare_best(request: HttpRequest) -> HttpResponse:
    """A table: where the first series was best in each job, and what another one was then."""
    asked = _asked(request)
    series = asked.query.series[0]
    other = asked.query.other or _partner(series, known_series(asked.jobs))
    rows = at_best_step(asked.jobs, series, other, lower_is_better=is_lower_better(series)) if other else []
    context = {"rows": rows, "series": series_title(series), "other": series_title(other), "query": asked.query}
    return render(request, "jobs/_compare_best.html", context)


def _asked(request: HttpRequest) -> Asked:
    query = CompareQuery.from_query(request.GET)
    found = visible_jobs(person(request)).in_bulk(query.job_ids[: 2 * MOST_JOBS])
    jobs = [found[pk] for pk in query.job_ids if pk in found]
    return Asked(query, jobs[:MOST_JOBS], query.remarks + _remarks(query, jobs))


def _remarks(query: CompareQuery, jobs: list[Job]) -> list[str]:
    shown = {job.pk for job in jobs}
    unknown = [f"#{pk}" for pk in query.job_ids[: 2 * MOST_JOBS] if pk not in shown]
    unknown += [f"“{part[:40]}”" for part in query.unreadable]
    remarks = []
    if unknown:
        names = ", ".join(unknown[:10])
        remarks.append(
            gettext("Left out, because you cannot see it or it does not exist: %(names)s.") % {"names": names}
        )
    if len(query.job_ids) > MOST_JOBS and len(jobs) >= MOST_JOBS:
        remarks.append(gettext("Only the first %(n)s jobs are compared.") % {"n": MOST_JOBS})
    if query.baseline is not None and query.baseline not in shown:
        remarks.append(
            gettext("The baseline #%(id)s is not among the jobs; nothing is held against it.") % {"id": query.baseline}
        )
    return remarks


def _page(request: HttpRequest, asked: Asked) -> dict[str, Any]:
    query, names = asked.query, known_series(asked.jobs)
    own = views_menu(person(request), ViewPage.COMPARISON, query.opened, query.stored) | smoothing_choices(query)
    return own | {
        "remarks": asked.remarks,
        "candidates": _candidates(request, asked.jobs),
        "axes": [(axis.value, axis_title(axis)) for axis in AXIS_TITLES],  # type: ignore[attr-defined]
        "series_choices": _series_choices(names, query.series),
        "fields": field_choices(),
        "configuration": CONFIGURATION,
        "bands": _bands(),
        "charts": [(place, name, series_title(name)) for place, name in enumerate(query.series)],
        "has_room": len(query.series) < MOST_SERIES,
        "address": query.address(),
    }


def _tables(asked: Asked) -> dict[str, Any]:
    query, compared = asked.query, _compared(asked)
    comparison = compared.comparison
    comparable = comparability(asked.jobs)
    rows = [row for row in compared.rows if row.metric.name != "device_name"]  # stands among the circumstances
    return {
        "query": query,
        "runs": _runs(asked, compared.columns),
        "topics": ",".join(f"job:{pk}" for pk in _open_ids(asked.jobs)),
        "columns": compared.columns,
        "baseline": compared.baseline,
        "comparison": comparison,
        "comparability": comparable,
        "is_apart": comparable is not None and not comparable.is_comparable,
        "options": comparison.options if query.shows_all else comparison.diff,
        "rows": rows if query.shows_all or len(compared.columns) < 2 else [row for row in rows if row.differs],
        "num_same": sum(not row.differs for row in rows) if len(compared.columns) > 1 else 0,
        "num_same_options": len(comparison.options) - len(comparison.diff),
        "toggle_all": query.address(all=None if query.shows_all else "1"),
        "unpinned": query.address(baseline=None),
        "is_grouped": any(len(column.jobs) > 1 for column in compared.columns),
        "steps": compared.steps,
        "courses": compared.courses,
        "metric_choices": _metric_choices(compared),
    }


def _compared(asked: Asked) -> Compared:
    query = asked.query
    return compare_columns(asked.jobs, group=query.group, legend=query.legend, baseline=query.baseline, band=query.band)


def _runs(asked: Asked, columns: list[Column]) -> list[Run]:
    query = asked.query
    places = {pk: column.place for column in columns for pk in column.job_ids}
    ids = [job.pk for job in asked.jobs]
    return [
        Run(
            job,
            query.address(jobs=",".join(str(pk) for pk in ids if pk != job.pk)),
            query.address(baseline=None if job.pk == query.baseline else job.pk),
            job.pk == query.baseline,
            places.get(job.pk, 0),
        )
        for job in asked.jobs
    ]


def _open_ids(jobs: list[Job]) -> list[int]:
    return [job.pk for job in jobs if not job.has_ended]


def _candidates(request: HttpRequest, jobs: list[Job]) -> list[Job]:
    """Jobs to add, the newest first, where there is room for more."""
    if len(jobs) >= MOST_JOBS:
        return []
    newest = visible_jobs(person(request)).filter(last_attempt__num_points__gt=0)
    return list(newest.exclude(pk__in=[job.pk for job in jobs]).order_by("-pk")[:30])


def _series_choices(names: list[str], chosen: list[str]) -> list[tuple[str, str]]:
    return [(name, series_title(name)) for name in dict.fromkeys([*names, *chosen])]


def _partner(series: str, names: list[str]) -> str:
    """The series that is looked up beside another one: its evaluation, else the next one."""
    if series.startswith("train_") and (partner := series.replace("train_", "eval_")) in names:
        return partner
    return next((name for name in names if name != series and not name.startswith("telemetry.")), "")


def _metric_choices(compared: Compared) -> list[tuple[str, str]]:
    """Figures that are numbers, those with a better direction first."""
    rows = [
        row.metric
        for row in compared.rows
        if any(isinstance(value, int | float) and not isinstance(value, bool) for value in row.metric.values)
    ]
    ordered = sorted(rows, key=lambda row: row.better is Better.NEITHER)
    return [(row.name, row.label) for row in ordered if row.name in Summary.model_fields]


def _bands() -> list[tuple[str, str]]:
    return [
        (Band.STANDARD_DEVIATION.value, gettext("± standard deviation")),
        (Band.STANDARD_ERROR.value, gettext("± standard error")),
        (Band.INTERVAL.value, gettext("95 % t-interval")),
        (Band.RANGE.value, gettext("lowest to highest")),
    ]


def _counted(notes: list[str]) -> list[str]:
    """The first notes, and how many more there are."""
    if len(notes) <= _MOST_NOTES:
        return notes
    return [*notes[:_MOST_NOTES], gettext("… and %(n)s more jobs without a line.") % {"n": len(notes) - _MOST_NOTES}]
