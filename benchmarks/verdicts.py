"""Do studies say what is true? The same configuration twice must be a tie; one slowed down by 5 % must be found.

Repeats are added until the ratio's half-width is under 2 %, or until fifteen say that it is too noisy here. Where it
is, a study takes a minute: `VERDICTS_TRIES=8,4` asks for fewer of the one and the other.
"""

import os
from typing import Any

from benchmarks.effort import QUICK, Effort
from benchmarks.load import measured

NUM_SAME, AIM_TIES = 20, 19
NUM_SLOWED, AIM_FOUND = 10, 9


def measure(effort: Effort) -> dict[str, Any]:
    """Every study's verdict."""
    usual = (2, 1) if effort is QUICK else (NUM_SAME, NUM_SLOWED)
    counts = os.environ.get("VERDICTS_TRIES", ",".join(map(str, usual))).split(",")
    return measured("", "benchmarks.verdicts_measured", *counts)


def table(results: dict[str, Any]) -> list[str]:
    """The results as Markdown lines."""
    same = _row("the same configuration twice: a tie", results["same"], "tie", AIM_TIES / NUM_SAME)
    slowed = _row("slowed down by 5 %: slower", results["slowed"], "worse", AIM_FOUND / NUM_SLOWED)
    head = "| Studies on the MLP, until sure | Said so | Too noisy here | Said otherwise | Repeats | Ratios | Aim |"
    return [head, "|---|---|---|---|---|---|---|", same, slowed]


def _row(name: str, studies: list[dict[str, Any]], right: str, aim: float) -> str:
    said = [study["verdict"] for study in studies]
    num_right, num_noisy = said.count(right), said.count("too_noisy")
    repeats, ratios = [study["n"] for study in studies], [study["ratio"] for study in studies]
    cells = [
        name,
        f"{num_right} of {len(said)}",
        str(num_noisy),
        str(len(said) - num_right - num_noisy),
        f"{min(repeats)} to {max(repeats)}",
        f"{min(ratios):.3f} to {max(ratios):.3f}",
        "reached" if num_right >= aim * len(said) else "missed",
    ]
    return f"| {' | '.join(cells)} |"
