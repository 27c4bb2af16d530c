"""A whole comparison at once: jobs, their columns, and every figure against the baseline."""

from collections.abc import Sequence
from dataclasses import dataclass

from jobs.models import Attempt, Job
from jobs.selectors.baseline import CellRow, baseline_column, cell_rows
from jobs.selectors.breakeven import Course, courses
from jobs.selectors.columns import Column, columns_of
from jobs.selectors.comparison import Comparison, compare
from jobs.selectors.curves import series_names
from jobs.selectors.phases import StepParts, step_parts
from jobs.statistics import Band

# What a screen and a table still bear.
MOST_JOBS = 200

# Jobs whose series are looked up: one of each kind of work and device, then the last of each.
_ASKED_FOR_SERIES = 24


@dataclass(frozen=True)
class Compared:
    """What tables and charts of a comparison are made of."""

    comparison: Comparison
    columns: list[Column]
    baseline: Column | None
    band: Band
    rows: list[CellRow]
    steps: list[StepParts]
    courses: list[Course]

    @property
    def by_name(self) -> dict[str, CellRow]:
        """The rows by their metrics' names."""
        return {row.metric.name: row for row in self.rows}


def compare_columns(jobs: Sequence[Job], *, group: str, legend: str, baseline: int | None, band: Band) -> Compared:
    """Hold the jobs, or groups of them, against each other and against the pinned job's column."""
    comparison = compare(jobs)
    columns = columns_of(jobs, group, legend)
    pinned = baseline_column(columns, baseline)
    rows = cell_rows(comparison, columns, pinned, band)
    by_name = {row.metric.name: row for row in rows}
    steps, ways = step_parts(columns, by_name), courses(columns, by_name, pinned)
    return Compared(comparison, columns, pinned, band, rows, steps, ways)


def known_series(jobs: Sequence[Job]) -> list[str]:
    """The series that the jobs recorded, those of training first; asked of one job of each kind of work and device."""
    kinds: dict[tuple[str, str, str, bool], list[Attempt]] = {}
    for job in jobs:
        if job.last_attempt and job.last_attempt.num_points:
            kind = (job.spec["model"], job.spec["dataset"], job.last_attempt.device_name, job.has_ended)
            kinds.setdefault(kind, []).append(job.last_attempt)
    asked = dict.fromkeys([attempts[place] for place in (0, -1) for attempts in kinds.values()])
    names = series_names(*list(asked)[:_ASKED_FOR_SERIES])
    return sorted(names, key=lambda name: name.startswith("telemetry."))
