"""The step time that the engine reports, against an outside clock: the parent process times the lines as they arrive.

The engine tells a window of steps as soon as it has ended, so between two such lines this process's clock has counted
the same steps without any reading of the engine's. The same figures are made of both: the median over windows, which
is what a run is judged by, and the length of the whole steady part.
"""

from itertools import pairwise
from statistics import median, median_low
from typing import Any

from benchmarks.effort import Effort
from benchmarks.processes import EngineRun, run_engine
from benchmarks.work import WORKLOADS

AIM = 0.02  # in every repeat
NUM_EARLY_WINDOWS = 2  # the first step and the warm-up are told by themselves
NUM_STEPS = {"mlp/digits": 12_000, "convnet/digits": 1000, "gpt-tiny/stdlib-text": 120}


def measure(effort: Effort) -> dict[str, Any]:
    """Per workload and repeat: ms a step by both clocks, over the same steps."""
    return {name: _measure(name, effort.num_repeats) for name in WORKLOADS}


def _measure(workload: str, num_repeats: int) -> list[dict[str, float]]:
    spec = WORKLOADS[workload] | {"num_steps": NUM_STEPS[workload]}
    return [compare_clocks(run_engine(spec)) for _ in range(num_repeats)]


def compare_clocks(run: EngineRun) -> dict[str, float]:
    """The step time in ms and the steady part in seconds by either clock."""
    ends = [
        (event["steps"][-1], arrived_s)
        for event, arrived_s in zip(run.events, run.arrived_s, strict=True)
        if event["type"] == "points" and "train_loss" in event["series"]
    ][NUM_EARLY_WINDOWS - 1 :]
    times_ms: list[float] = []
    for (step, began_s), (last_step, ended_s) in pairwise(ends):
        num_steps = last_step - step
        times_ms += [1e3 * (ended_s - began_s) / num_steps] * num_steps
    return {
        "engine_ms": run.summary["steady_step_time_ms"],
        "outside_ms": median_low(times_ms),
        "engine_steady_s": run.summary["steady_s"],
        "outside_steady_s": ends[-1][1] - ends[0][1],
    }


def table(results: dict[str, Any]) -> list[str]:
    """The results as Markdown lines: medians over the repeats."""
    lines = [
        "| Engine's clock against an outside one | Engine, ms a step | Outside, ms a step | Difference "
        "| Of the steady part | Within 2 % |",
        "|---|---|---|---|---|---|",
    ]
    for name, repeats in results.items():
        engine_ms, outside_ms = (median(repeat[key] for repeat in repeats) for key in ("engine_ms", "outside_ms"))
        of_step, of_part = (
            _errors(repeats, "engine_ms", "outside_ms"),
            _errors(repeats, "engine_steady_s", "outside_steady_s"),
        )
        verdict = "yes" if max(map(abs, of_step + of_part)) <= AIM else "no"
        cells = [name, f"{engine_ms:.4f}", f"{outside_ms:.4f}", _percent(of_step), _percent(of_part), verdict]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _errors(repeats: list[dict[str, float]], engine: str, outside: str) -> list[float]:
    return [repeat[engine] / repeat[outside] - 1 for repeat in repeats]


def _percent(errors: list[float]) -> str:
    return f"{100 * median(errors):+.2f} %"
