"""One run as a board keeps it: the figures that configurations are ranked by, and what pairs it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from jobs.contract.metrics import Summary
from jobs.loss_course import Course, time_to
from jobs.needed_memory import needed_bytes

# As many as a configuration is ever repeated, and some; the others are in the list of jobs.
MOST_RUNS = 20
_MOST_PAIRED = MOST_RUNS // 2


@dataclass(frozen=True)
class BoardRun:
    """A run that succeeded in one piece. None where a figure was not measured or is not finite."""

    job: int
    seed: int
    owner: str
    ended_at: str  # ISO 8601
    steady_step_time_ms: float | None = None
    samples_per_s: float | None = None
    time_to_target_s: float | None = None  # None: never reached, or no target; see `has_course`
    energy_to_target_j: float | None = None
    power_w: float | None = None  # the mean of the steady part
    peak_bytes: float | None = None
    mfu: float | None = None
    final_eval_loss: float | None = None
    has_course: bool = False  # whether its training loss was recorded

    def as_json(self) -> dict[str, Any]:
        """Plain values, without those that are not known."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "BoardRun":
        """The run as it was kept."""
        run = cls(**{name: value for name, value in stored.items() if name in _NAMES})
        if run.power_w is None and run.energy_to_target_j and run.time_to_target_s:  # of before power was kept
            return replace(run, power_w=run.energy_to_target_j / run.time_to_target_s)
        return run


_NAMES = {field.name for field in fields(BoardRun)}


def run_of(
    summary: Summary, course: Course, target: float | None, *, job: int, seed: int, owner: str, ended_at: str
) -> BoardRun:
    """What a board keeps of a run that ended well."""
    time_s = None if target is None else time_to(course, target)
    power_w = mean_power_w(summary)
    return BoardRun(
        job=job,
        seed=seed,
        owner=owner,
        ended_at=ended_at,
        steady_step_time_ms=_positive(summary.steady_step_time_ms),
        samples_per_s=_positive(summary.samples_per_s),
        time_to_target_s=time_s,
        energy_to_target_j=None if time_s is None or power_w is None else power_w * time_s,
        power_w=power_w,
        peak_bytes=needed_bytes(summary),
        mfu=_positive(summary.mfu),
        final_eval_loss=_finite(summary.final_eval_loss),
        has_course=bool(course),
    )


def kept_runs(runs: Sequence[dict[str, Any]], beside: Mapping[int, int]) -> list[dict[str, Any]]:
    """Those of a configuration's runs, the oldest first, that a board keeps: 20, which stay in their order.

    Verdicts pair runs by their seeds, so half of the places are for the newest run of ten seeds: those that most of the
    others are `beside`, and of these the lowest, which any two configurations are likely to have in common. The
    other half is for the newest runs, whatever their seeds.
    """
    newest = {run["seed"]: place for place, run in enumerate(runs)}
    seeds = sorted(newest, key=lambda seed: (-beside.get(seed, 0), seed))
    paired = {newest[seed] for seed in seeds[:_MOST_PAIRED]}
    others = [place for place in range(len(runs)) if place not in paired]
    kept = paired.union(others[-(MOST_RUNS - len(paired)) :])
    return [run for place, run in enumerate(runs) if place in kept]


def mean_power_w(summary: Summary) -> float | None:
    """The mean power of the steady part; None where none was measured. Over the time to the target it is the energy."""
    energy_j, steady_s = _positive(summary.energy_j), _positive(summary.steady_s)
    return energy_j / steady_s if energy_j and steady_s else None


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _positive(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) and value > 0 else None
