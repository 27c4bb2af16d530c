"""A study as an ablation: the factors of each option on time and memory, its loss, and how they act together."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jobs.ablation import Bar, Factors, take_apart, waterfall
from jobs.contract.ablation import Design, read_design
from jobs.equal_loss import LossComparison
from jobs.models import Attempt
from jobs.selectors.studies import Runs, StudyRow, StudyView, counted_runs, of_same_memory, on_common_ground, peak_bytes
from jobs.statistics import RatioInterval


@dataclass(frozen=True)
class Contribution:
    """What one option does to one figure; None where too few repeats are there."""

    changes: dict[str, Any]
    alone: RatioInterval | None
    on_top: RatioInterval | None
    interaction: RatioInterval | None
    loss: LossComparison | None  # of the option alone beside the baseline
    bar: Bar | None

    @property
    def interacts(self) -> bool:
        """Whether the company of the others changes what it does, beyond noise."""
        return self.interaction is not None and not self.interaction.contains_one


@dataclass(frozen=True)
class Waterfall:
    """One figure from the baseline to all options together; bars are None while a median is missing."""

    figure: str  # "time" or "memory"
    baseline: float | None  # ms or bytes, a median over repeats
    all_together: float | None
    factors: Factors
    contributions: list[Contribution]
    bars: list[Bar]  # baseline, each option, interaction, total; empty until all are known


@dataclass(frozen=True)
class Ablation:
    """A study's ablation."""

    time: Waterfall
    memory: Waterfall
    loss: LossComparison | None  # of all options together


def ablation_of(view: StudyView) -> Ablation | None:
    """The ablation that a study makes up; None where its configurations make none."""
    rows = {row.configuration.place: row for row in view.rows}
    design = read_design([rows[place].configuration for place in sorted(rows)]) if 0 in rows else None
    if design is None:
        return None
    return Ablation(
        time=_waterfall("time", view, design, lambda run: run.steady_step_time_ms, lambda row: row.step_time_ms),
        memory=_waterfall("memory", view, design, peak_bytes, lambda row: row.peak_bytes, of_same_memory),
        loss=rows[design.together].loss,
    )


def _waterfall(
    figure: str,
    view: StudyView,
    design: Design,
    read: Callable[[Attempt], float | None],
    median: Callable[[StudyRow], float | None],
    comparable: Callable[[Runs, Runs], Runs] = lambda runs, _baseline: runs,
) -> Waterfall:
    rows = {row.configuration.place: row for row in view.rows}
    baseline_runs = counted_runs(rows[0].jobs)
    runs = {place: comparable(_runs_of(row, baseline_runs), baseline_runs) for place, row in rows.items()}
    values = {place: _repeats(found, read) for place, found in runs.items()}
    factors = take_apart(
        values[0],
        [values[place] for place in design.singles],
        values[design.together],
        [values[place] if place is not None else None for place in design.without],
        until_sure=view.plan.until_sure,
    )
    baseline = median(rows[0])
    bars = _bars(baseline, factors)
    contributions = [
        Contribution(
            changes=dict(option),
            alone=factors.singles[number],
            on_top=factors.on_top[number],
            interaction=factors.interactions[number],
            loss=rows[design.singles[number]].loss,
            bar=bars[number + 1] if bars else None,
        )
        for number, option in enumerate(design.options)
    ]
    return Waterfall(figure, baseline, median(rows[design.together]), factors, contributions, bars)


def _runs_of(row: StudyRow, baseline: Runs) -> Runs:
    return on_common_ground(counted_runs(row.jobs), baseline, row.configuration.changes)


def _repeats(runs: Runs, read: Callable[[Attempt], float | None]) -> dict[int, float]:
    found = {seed: read(run) for seed, run in runs.items()}
    return {seed: value for seed, value in found.items() if value and value > 0}


def _bars(baseline: float | None, factors: Factors) -> list[Bar]:
    """From the baseline's median by factors paired by seed: the last bar is not the median of all options' runs."""
    known = [single.ratio for single in factors.singles if single]
    if baseline is None or factors.total is None or len(known) < len(factors.singles):
        return []
    return waterfall(baseline, known, baseline * factors.total.ratio)
