"""Fastest that fits, against the full grid run for real: how near the best it lands, at what share of the device time.

Every configuration of the grid runs at full length, repeats in turns; its step time is the median of its repeats. The
search knows none of that: its runs are its own, fresh processes as well.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean, median
from typing import Any

from benchmarks.effort import Effort
from benchmarks.processes import Failed, run_engine
from benchmarks.work import WORKLOADS
from jobs.search import SHARE, Costs, finalists, next_batch
from jobs.search_points import Point, Space, Trial

AIM = 0.03  # slower than the true best, at most
_SHORT = 5  # a screening run is a fifth of a full one
_STEPS = {"mlp/digits": 10_000, "gpt-tiny/stdlib-text": 200}
_LOADER = {"data_loading": "dataloader"}


@dataclass(frozen=True)
class Run:
    """One run: its step time, and the seconds of its process from start to end."""

    step_time_ms: float
    wall_s: float


def measure(effort: Effort) -> dict[str, Any]:
    """The grid, then the search, on each workload; for a quick look only on the first."""
    names = list(_STEPS)[:1] if effort.num_repeats == 1 else list(_STEPS)
    return {name: _measure(name, effort.num_repeats) for name in names}


def space_of(workload: str) -> Space:
    """What may vary there without changing the work."""
    size = WORKLOADS[workload]["micro_batch_size"]
    splits = [{"micro_batch_size": size // split, "grad_accum_steps": split} for split in (2, 4)]
    return Space(
        (
            ({}, {"precision": "bf16-mixed"}),
            ({}, {"optimizer_impl": "foreach"}, {"optimizer_impl": "fused"}),
            ({}, *splits),
            ({}, _LOADER),
        )
    )


def _measure(workload: str, num_repeats: int) -> dict[str, Any]:
    space = space_of(workload)
    points = list(product(*map(range, space.sizes)))
    grid: dict[Point, list[Run]] = {point: [] for point in points}
    for repeat in range(num_repeats):
        for point in points if repeat % 2 == 0 else reversed(points):
            if run := _run(workload, space, point, 1, repeat):
                grid[point].append(run)
    found, runs = _search(workload, space, num_repeats)
    times = {point: median(run.step_time_ms for run in own) for point, own in grid.items() if own}
    best = min(times, key=lambda point: times[point])
    return {
        "num_configurations": space.num_points,
        "grid_ms": {str(space.changes(point)): [run.step_time_ms for run in own] for point, own in grid.items()},
        "best": space.changes(best),
        "found": space.changes(found),
        "slower": times[found] / times[best] - 1,
        "grid_s": sum(run.wall_s for own in grid.values() for run in own),
        "search_s": sum(run.wall_s for run in runs),
        "num_search_runs": len(runs),
    }


def _search(workload: str, space: Space, num_repeats: int) -> tuple[Point, list[Run]]:
    """What the search finds, and its runs: screening, then the finalist beside the base."""
    trials: dict[Point, Trial] = {}
    short: list[Run] = []
    while batch := next_batch(
        space, list(trials.values()), _num_screening_runs(workload, space, short, num_repeats), 0
    ):
        for point in batch:
            trial = trials.get(point, Trial(point))
            run = _run(workload, space, point, _SHORT, len(trial.times_ms))
            short += [run] if run else []
            times = [*trial.times_ms, *([run.step_time_ms] if run else [])]
            trials[point] = Trial(point, times, is_out=run is None)
    best = [space.base, *finalists(list(trials.values()), space.base, 1)]
    final: dict[Point, list[Run]] = {point: [] for point in best}
    for repeat in range(num_repeats):
        for point in best if repeat % 2 == 0 else best[::-1]:
            if run := _run(workload, space, point, 1, repeat):
                final[point].append(run)
    found = min((point for point in best if final[point]), key=lambda point: _median(final[point]))
    return found, [*short, *(run for own in final.values() for run in own)]


def _num_screening_runs(workload: str, space: Space, short: Sequence[Run], num_repeats: int) -> int:
    """As the service reckons: a short run costs no less than its share of steps, and what was measured beside that."""
    share = 1 / _SHORT
    if short:
        more = _STEPS[workload] * (1 - 1 / _SHORT) / 1000
        share = max(share, fmean(run.wall_s / (run.wall_s + more * run.step_time_ms) for run in short))
    return Costs(num_repeats, share).num_screening_runs(space)


def _run(workload: str, space: Space, point: Point, part: int, repeat: int) -> Run | None:
    """One run of a part of the steps; None where it did not end well."""
    spec = WORKLOADS[workload] | space.changes(point) | {"num_steps": _STEPS[workload] // part, "seed": repeat}
    began_s = time.perf_counter()
    try:
        summary = run_engine(spec).summary
    except Failed:
        return None
    return Run(summary["steady_step_time_ms"], time.perf_counter() - began_s)


def _median(runs: Sequence[Run]) -> float:
    return median(run.step_time_ms for run in runs)


def table(results: dict[str, Any]) -> list[str]:
    """The results as Markdown lines."""
    lines = [
        f"| Fastest that fits | Configurations | Found | Slower than the true best | Of the grid's time | Within "
        f"{AIM:.0%} at {SHARE:.0%} |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in results.items():
        share = row["search_s"] / row["grid_s"]
        kept = row["slower"] <= AIM and share <= SHARE
        found = ", ".join(f"{field} {value}" for field, value in row["found"].items()) or "the base"
        lines.append(
            f"| {name} | {row['num_configurations']} | {found} | {row['slower']:+.1%} | {share:.0%} "
            f"({row['num_search_runs']} runs) | {'yes' if kept else 'no'} |"
        )
    return lines
