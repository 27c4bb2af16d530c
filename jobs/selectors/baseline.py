"""Figures held against a baseline's: difference, ratio, and whether repeats show one of them to be better."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jobs.contract.metrics import Better
from jobs.models import Job
from jobs.selectors.columns import Column
from jobs.selectors.comparison import Comparison, MetricRow, index_of_best
from jobs.selectors.values import known_spec
from jobs.statistics import Band, RatioInterval, Spread, Verdict, judge, ratio_interval, spread_of


@dataclass(frozen=True)
class Cell:
    """What a column measured of one figure, and how that stands to the baseline's column."""

    value: Any  # the mean of repeats; what they agree in where it is no number; None where there is nothing
    spread: Spread | None = None  # of two repeats or more
    delta: float | None = None  # value less the baseline's
    ratio: float | None = None  # to the baseline's: of the means, or the paired geometric mean where there are pairs
    interval: RatioInterval | None = None
    verdict: Verdict | None = None  # None for the baseline itself and where nothing can be compared
    is_better: bool | None = None  # by the figure's direction alone; None where it has none or they are equal
    is_best: bool = False
    is_baseline: bool = False


@dataclass(frozen=True)
class CellRow:
    """One figure with a cell for each column."""

    metric: MetricRow
    cells: list[Cell]

    @property
    def differs(self) -> bool:
        """Whether a column has another value than the first."""
        return any(cell.value != self.cells[0].value for cell in self.cells[1:])


def baseline_column(columns: Sequence[Column], job_id: int | None) -> Column | None:
    """The column that holds the job that was pinned."""
    return next((column for column in columns if job_id in column.job_ids), None)


def cell_rows(comparison: Comparison, columns: Sequence[Column], baseline: Column | None, band: Band) -> list[CellRow]:
    """Every figure that was measured, column by column, against the baseline where there is one."""
    places = {job.pk: place for place, job in enumerate(comparison.jobs)}
    return [_row(row, columns, places, baseline, band) for row in comparison.metrics]


def _row(
    row: MetricRow, columns: Sequence[Column], places: dict[int, int], baseline: Column | None, band: Band
) -> CellRow:
    values = [[row.values[places[pk]] for pk in column.job_ids] for column in columns]
    ranked = [mean_of([row.ranked[places[pk]] for pk in column.job_ids]) for column in columns]
    best = index_of_best(ranked, row.better)
    spreads = [spread_of(_numbers(own), band) if len(own) > 1 else None for own in values]
    shown = [_shown(own) for own in values]
    base = next((value for value, column in zip(shown, columns, strict=True) if column is baseline), None)
    cells = []
    for place, column in enumerate(columns):
        is_best = best is not None and ranked[place] is not None and ranked[place] == ranked[best]
        cell = Cell(shown[place], spreads[place], is_best=is_best, is_baseline=column is baseline)
        if baseline is not None and column is not baseline:
            cell = _against(cell, base, row, column, baseline, places)
        cells.append(cell)
    return CellRow(row, cells)


def _against(cell: Cell, base: Any, row: MetricRow, column: Column, baseline: Column, places: dict[int, int]) -> Cell:
    """The cell with its difference to the baseline; unchanged where one of them is no number."""
    if not (_is_number(cell.value) and _is_number(base)):
        return cell
    delta = cell.value - base
    own, others = ([job for job in side.jobs if _is_number(row.ranked[places[job.pk]])] for side in (column, baseline))
    pairs = [(row.ranked[places[one.pk]], row.ranked[places[other.pk]]) for one, other in paired(own, others)]
    usable = [one / other for one, other in pairs if _is_positive(one) and _is_positive(other)]
    interval = ratio_interval(usable) if len(usable) == len(pairs) else None
    ratio = interval.ratio if interval else (cell.value / base if base > 0 and cell.value >= 0 else None)
    lower = None if row.better is Better.NEITHER else row.better is Better.LOWER
    verdict = judge(interval, lower_is_better=lower)
    is_better = None if lower is None or delta == 0 or not (own and others) else (delta < 0) == lower
    if verdict in (Verdict.BETTER, Verdict.WORSE):
        is_better = verdict is Verdict.BETTER
    return Cell(
        cell.value,
        cell.spread,
        delta,
        ratio,
        interval,
        verdict,
        is_better,
        cell.is_best,
    )


def paired(jobs: Sequence[Job], others: Sequence[Job]) -> list[tuple[Job, Job]]:
    """Repeats that belong together: those of the same seed, in the order in which they were submitted.

    A job of each that stands alone is a pair whatever its seed: two single runs can still be held side by side.
    """
    if len(jobs) == len(others) == 1:
        return [(jobs[0], others[0])]
    by_seed: dict[Any, list[Job]] = defaultdict(list)
    for job in sorted(others, key=lambda job: job.pk):
        by_seed[known_spec(job).get("seed")].append(job)
    pairs = []
    for job in sorted(jobs, key=lambda job: job.pk):
        waiting = by_seed[known_spec(job).get("seed")]
        if waiting:
            pairs.append((job, waiting.pop(0)))
    return pairs


def mean_of(values: Sequence[Any]) -> float | None:
    """The mean of those that are finite numbers; None where there is none."""
    numbers = _numbers(values)
    return sum(numbers) / len(numbers) if numbers else None


def _shown(values: list[Any]) -> Any:
    """One value as it is; of several the mean, or what they agree in."""
    if len(values) == 1:
        return values[0]
    if any(_is_number(value) for value in values):
        return mean_of(values)
    known = [value for value in values if value is not None]
    return known[0] if known and all(value == known[0] for value in known) else None


def _numbers(values: Sequence[Any]) -> list[float]:
    return [value for value in values if _is_number(value)]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_positive(value: Any) -> bool:
    return _is_number(value) and value > 0
