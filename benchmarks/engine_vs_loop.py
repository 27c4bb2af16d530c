"""The engine against the loop that one would write by hand: steps per second of the same work.

First with the same options, where the engine may cost nothing; then with those that it offers and a plain loop does
not have. Both log each step's loss and time. Above 1 the engine is faster. Last the loop against itself: how far that
row lies from 1 is what the method cannot tell apart.
"""

from typing import Any

from benchmarks.effort import Effort
from benchmarks.intervals import Interval, judge
from benchmarks.pairs import compare, say_losses
from benchmarks.work import WORKLOADS

SAME_OPTIONS_AIM, BEST_OPTIONS_AIM = 0.98, 1.3
BEST_OPTIONS = {"optimizer_impl": "fused", "data_loading": "on-device"}


def measure(effort: Effort) -> dict[str, Any]:
    """A result per row of the table."""
    about = (["plain"], effort.stopping, effort.course)
    rows = {f"{name}, same options": compare(name, *about) | {"aim": SAME_OPTIONS_AIM} for name in WORKLOADS}
    rows["mlp/digits, engine's best options"] = compare("mlp/digits", *about, **BEST_OPTIONS) | {
        "aim": BEST_OPTIONS_AIM
    }
    control = compare("convnet/digits", ["plain"], effort.at_least, effort.course, subject="control")
    rows["convnet/digits, loop against itself"] = control | {"aim": None}
    return {name: row | {"verdict": _judge(row, effort)} for name, row in rows.items()}


def _judge(row: dict[str, Any], effort: Effort) -> str:
    found = row["ratios"]["plain"]
    interval = Interval(found["ratio"], found["low"], found["high"])
    return "control" if row["aim"] is None else judge(interval, row["aim"], effort.stopping)


def table(results: dict[str, Any]) -> list[str]:
    """The results as Markdown lines: the engine's steps per second relative to the loop's."""
    lines = [
        "| Engine against hand-written loop | Loop, ms a step | Engine, ms a step | Ratio | 95 % interval | Repeats "
        "| Aim | Of CPU time | Losses |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, row in results.items():
        found, of_cpu, times_ms = row["ratios"]["plain"], row["cpu_time_ratios"]["plain"], row["step_time_ms"]
        cells = [
            name,
            f"{times_ms['plain']:.3f}",
            f"{next(iter(times_ms.values())):.3f}",
            f"{found['ratio']:.3f}",
            f"{found['low']:.3f} to {found['high']:.3f}",
            str(row["num_repeats"]),
            row["verdict"],
            f"{of_cpu['ratio']:.3f} ({of_cpu['low']:.3f} to {of_cpu['high']:.3f})",
            say_losses(row["loss_difference"]["plain"]),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines
