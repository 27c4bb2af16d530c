"""Fastest that fits, against the full grid run for real: how near the best it lands, at what share of the device time.

Every configuration of the grid runs at full length, repeats in turns; the best is the one whose median step time is the
least. The search knows none of that: its runs are its own, in an engine that stays up, as those of the grid. Among so
many nearly alike the least median is in part luck: so what was found and the best run once more, in turns, and how far
they lie apart is told from these runs alone.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean, median
from typing import Any

from benchmarks.effort import Effort
from benchmarks.kept_engine import KeptEngine
from benchmarks.work import WORKLOADS
from jobs.search import SHARE, Costs, finalists, next_batch
from jobs.search_points import Point, Space, Trial

AIM = 0.03  # slower than the true best, at most
_SHORT = 5  # a screening run is a fifth of a full one
_STEPS = {"mlp/digits": 6_000, "gpt-tiny/stdlib-text": 50}
_NUM_TURNS = 6  # of what was found and the best, at last
_LOADER = {"data_loading": "dataloader"}


@dataclass(frozen=True)
class Run:
    """One run: its step time, and the seconds that it took from being asked for to its end."""

    step_time_ms: float
    wall_s: float


def measure(effort: Effort) -> dict[str, Any]:
    """The grid, then the search, on each workload; for a quick look only on the first."""
    names = list(_STEPS)[:1] if effort.num_repeats == 1 else list(_STEPS)
    engine = KeptEngine()
    try:
        return {name: _measure(engine, name, effort.num_repeats) for name in names}
    finally:
        engine.end()


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


class _Bench:
    """A workload with what may vary there, and the engine that runs it."""

    def __init__(self, engine: KeptEngine, workload: str) -> None:
        self._engine, self._base = engine, WORKLOADS[workload]
        self.space, self.num_steps = space_of(workload), _STEPS[workload]

    def run(self, point: Point, part: int, seed: int) -> Run:
        """One run of a part of the steps."""
        spec = self._base | self.space.changes(point) | {"num_steps": self.num_steps // part, "seed": seed}
        began_s = time.perf_counter()
        _started, summary = self._engine.run(spec)
        assert summary.steady_step_time_ms
        return Run(summary.steady_step_time_ms, time.perf_counter() - began_s)

    def in_turns(self, points: Sequence[Point], num_repeats: int) -> dict[Point, list[Run]]:
        """Each at full length, there and back."""
        runs: dict[Point, list[Run]] = {point: [] for point in points}
        for repeat in range(num_repeats):
            for point in points if repeat % 2 == 0 else points[::-1]:
                runs[point].append(self.run(point, 1, repeat))
        return runs


def _measure(engine: KeptEngine, workload: str, num_repeats: int) -> dict[str, Any]:
    bench = _Bench(engine, workload)
    space = bench.space
    bench.run(space.base, _SHORT, 0)  # what the first run of a process loads is nobody's time
    grid = bench.in_turns(list(product(*map(range, space.sizes))), num_repeats)
    found, runs = _search(bench, num_repeats)
    best = min(grid, key=lambda point: _median(grid[point]))
    slower = [] if found == best else _apart(bench, found, best)
    return {
        "num_configurations": space.num_points,
        "grid_ms": {str(space.changes(point)): [run.step_time_ms for run in own] for point, own in grid.items()},
        "best": space.changes(best),
        "found": space.changes(found),
        "slower": median(slower) if slower else 0.0,
        "slower_by_turn": slower,
        "base_slower": _median(grid[space.base]) / _median(grid[best]) - 1,
        "grid_s": sum(run.wall_s for own in grid.values() for run in own),
        "search_s": sum(run.wall_s for run in runs),
        "num_search_runs": len(runs),
    }


def _apart(bench: _Bench, found: Point, best: Point) -> list[float]:
    """By what part of the best's step time the other is slower, turn by turn."""
    runs = bench.in_turns([found, best], _NUM_TURNS)
    return [mine.step_time_ms / its.step_time_ms - 1 for mine, its in zip(runs[found], runs[best], strict=True)]


def _search(bench: _Bench, num_repeats: int) -> tuple[Point, list[Run]]:
    """What the search finds, and its runs: screening, then the finalist beside the base."""
    space, trials = bench.space, dict[Point, Trial]()
    short: list[Run] = []
    while batch := next_batch(space, list(trials.values()), _num_screening_runs(bench, short, num_repeats), 0):
        for point in batch:
            trial = trials.get(point, Trial(point))
            run = bench.run(point, _SHORT, len(trial.times_ms))
            short.append(run)
            trials[point] = Trial(point, [*trial.times_ms, run.step_time_ms])
    final = bench.in_turns([space.base, *finalists(list(trials.values()), space.base, 1)], num_repeats)
    found = min(final, key=lambda point: _median(final[point]))
    return found, [*short, *(run for own in final.values() for run in own)]


def _num_screening_runs(bench: _Bench, short: Sequence[Run], num_repeats: int) -> int:
    """As the service reckons: a short run costs no less than its share of steps, and what was measured beside that."""
    share = 1 / _SHORT
    if short:
        more = bench.num_steps * (1 - 1 / _SHORT) / 1000
        share = max(share, fmean(run.wall_s / (run.wall_s + more * run.step_time_ms) for run in short))
    return Costs(num_repeats, share).num_screening_runs(bench.space)


def _median(runs: Sequence[Run]) -> float:
    return median(run.step_time_ms for run in runs)


def table(results: dict[str, Any]) -> list[str]:
    """The results as Markdown lines."""
    aim = f"Within {AIM:.0%} at {SHARE:.0%}"
    lines = [
        f"| Fastest that fits | Configurations | Found | Slower than the best | Base | Of the grid's time | {aim} |",
        "|---|---|---|---|---|---|---|",
    ]
    return [*lines, *(_line(name, row) for name, row in results.items())]


def _line(name: str, row: dict[str, Any]) -> str:
    share = row["search_s"] / row["grid_s"]
    found = ", ".join(f"{field} {value}" for field, value in row["found"].items()) or "the base"
    cells = [
        name,
        str(row["num_configurations"]),
        found,
        f"{row['slower']:+.1%}" if row["slower_by_turn"] else "it is the best",
        f"{row['base_slower']:+.1%}",
        f"{share:.0%} ({row['num_search_runs']} runs)",
        "yes" if row["slower"] <= AIM and share <= SHARE else "no",
    ]
    return f"| {' | '.join(cells)} |"
