"""Jobs beside each other."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext
from django.views.decorators.http import require_GET

from jobs.figures import Figure, NamedCurve, bar_figure, curve_figure, series_title
from jobs.forms import CompareQuery
from jobs.forms.compare import MOST_JOBS
from jobs.models import Attempt, Job
from jobs.selectors.comparison import Comparison, MetricRow, compare
from jobs.selectors.curves import series_names
from jobs.selectors.jobs import visible_jobs
from jobs.views.access import person


@dataclass(frozen=True)
class Run:
    """One compared job, with the address of the comparison without it."""

    job: Job
    others: str
    colour: int


@require_GET
def compare_page(request: HttpRequest) -> HttpResponse:
    """The comparison that the address names; what cannot be shown is said in words."""
    query = CompareQuery.from_query(request.GET)
    found = visible_jobs(person(request)).in_bulk(query.job_ids)
    jobs = [found[pk] for pk in query.job_ids if pk in found]
    context: dict[str, Any] = {
        "query": query,
        "remarks": _remarks(query, jobs),
        "runs": _runs(jobs[:MOST_JOBS]),
        "candidates": _candidates(request, jobs),
    }
    if len(jobs) >= 2:
        context |= _compared(compare(jobs[:MOST_JOBS], query.series), query)
    return render(request, "jobs/compare.html", context)


def _runs(jobs: list[Job]) -> list[Run]:
    ids = [job.pk for job in jobs]
    return [Run(job, ",".join(str(pk) for pk in ids if pk != job.pk), place % 6) for place, job in enumerate(jobs)]


def _remarks(query: CompareQuery, jobs: list[Job]) -> list[str]:
    shown = {job.pk for job in jobs}
    unknown = [f"#{pk}" for pk in query.job_ids if pk not in shown] + [f"“{part[:40]}”" for part in query.unreadable]
    remarks = []
    if unknown:
        names = ", ".join(unknown[:10])
        remarks.append(
            gettext("Left out, because you cannot see it or it does not exist: %(names)s.") % {"names": names}
        )
    if len(jobs) > MOST_JOBS:
        remarks.append(gettext("Only the first %(n)s jobs are compared.") % {"n": MOST_JOBS})
    return remarks


def _candidates(request: HttpRequest, jobs: list[Job]) -> list[Job]:
    """Jobs to add, the newest first, where there is room for more."""
    if len(jobs) >= MOST_JOBS:
        return []
    newest = visible_jobs(person(request)).filter(last_attempt__num_points__gt=0)
    return list(newest.exclude(pk__in=[job.pk for job in jobs]).order_by("-pk")[:30])


def _compared(comparison: Comparison, query: CompareQuery) -> dict[str, Any]:
    attempts = [job.last_attempt for job in comparison.jobs if job.last_attempt]
    labels = [f"#{job.pk} {job.title}" for job in comparison.jobs]
    return {
        "comparison": comparison,
        "labels": labels,
        "series": _series(attempts, query.series),
        "figures": _curve_figures(comparison, labels) | _bar_figures(comparison),
        "notes": [curve.note for curve in comparison.curves if curve.note],
        "metrics": _rows_worth_showing(comparison),
    }


def _series(attempts: list[Attempt], chosen: str) -> list[tuple[str, str]]:
    names = dict.fromkeys(name for attempt in attempts for name in series_names(attempt))
    return [(name, series_title(name)) for name in (names or [chosen])]


def _curve_figures(comparison: Comparison, labels: list[str]) -> dict[str, Figure]:
    curves = [NamedCurve(label, curve.curve) for label, curve in zip(labels, comparison.curves, strict=True)]
    return {"curves-step": curve_figure(curves, "step"), "curves-wall_s": curve_figure(curves, "wall_s")}


def _bar_figures(comparison: Comparison) -> dict[str, Figure]:
    """Step time, and the memory that the most jobs know: the GPU's, else the process's."""
    figures = {}
    ticks = [f"#{job.pk}" for job in comparison.jobs]
    memory = comparison.metric("peak_allocated_bytes") or comparison.metric("peak_rss_bytes")
    for key, row in (("bars-time", comparison.metric("steady_step_time_ms")), ("bars-memory", memory)):
        if row:
            figures[key] = bar_figure(ticks, row.values, title=row.label, unit=row.unit)
    return figures


def _rows_worth_showing(comparison: Comparison) -> list[MetricRow]:
    """Figures that differ or have a better direction; the device stands among the circumstances."""
    return [row for row in comparison.metrics if row.name != "device_name"]
