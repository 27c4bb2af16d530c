"""The engine against other frameworks on the same work, with the same options; needs requirements-bench.txt.

Each is written as its own documentation writes a loop, with logging, progress bars and checkpoints switched off where
it has them, and fed batches that are cheaper than a DataLoader's. Above 1 the engine is faster.
"""

from typing import Any

from benchmarks.effort import Effort
from benchmarks.intervals import Interval, judge_against_one
from benchmarks.pairs import compare, say_losses
from benchmarks.work import WORKLOADS

PEERS = {
    "accelerate": "Accelerate",
    "fabric": "Lightning Fabric",
    "lightning_trainer": "Lightning Trainer",
    "hf_trainer": "Hugging Face Trainer",
}
MLP_AIM = 1.2


def measure(effort: Effort) -> dict[str, Any]:
    """A result per workload, with all peers in it."""
    return {name: compare(name, list(PEERS), effort.at_least, effort.peers_course) for name in WORKLOADS}


def table(results: dict[str, Any]) -> list[str]:
    """The results as Markdown lines."""
    lines = [
        "| Work | Peer | Peer, ms a step | Engine, ms a step | Ratio | 95 % interval | The engine is | Losses |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for workload, row in results.items():
        for peer, found in row["ratios"].items():
            cells = [
                workload,
                PEERS[peer],
                f"{row['step_time_ms'][peer]:.3f}",
                f"{row['step_time_ms']['engine']:.3f}",
                f"{found['ratio']:.2f}",
                f"{found['low']:.2f} to {found['high']:.2f}",
                _say(workload, found),
                say_losses(row["loss_difference"][peer]),
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def _say(workload: str, found: dict[str, Any]) -> str:
    verdict = judge_against_one(Interval(found["ratio"], found["low"], found["high"]))
    if workload != "mlp/digits":
        return verdict
    return f"{verdict} ({MLP_AIM} {'reached' if found['low'] >= MLP_AIM else 'missed'})"
