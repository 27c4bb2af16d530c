"""The peak memory that `estimate` foretells, against what the kernel counts when the spec is run.

On a CPU the measured figure is the process's peak less what it had before anything was built, and an estimate is
claimed above 256 MiB only: below, the libraries' own memory is as large.
"""

import json
import subprocess
from typing import Any

from benchmarks.effort import Effort
from benchmarks.processes import ROOT, Failed, Spec, engine_command, environment, run_engine

AIM = 0.15
CLAIMED_ABOVE_BYTES = 256 * 2**20
_COMMON: dict[str, Any] = {"device": "cpu", "num_threads": 1, "phase_steps": 0, "num_steps": 4, "optimizer": "adamw"}
_TOKENS = _COMMON | {"dataset": "synthetic-tokens", "sequence_length": 64, "micro_batch_size": 2}
_SEQUENCES = _COMMON | {"dataset": "synthetic-sequences", "sequence_length": 128, "micro_batch_size": 4}
_IMAGES = _COMMON | {"dataset": "synthetic-images"}
SPECS: dict[str, dict[str, Any]] = {
    "gpt-tiny, batch 64": _COMMON | {"model": "gpt-tiny", "dataset": "stdlib-text", "micro_batch_size": 64},
    "gpt2, 64 tokens, batch 2": _TOKENS | {"model": "gpt2"},
    "gpt2, 64 tokens, batch 8, SGD": _TOKENS | {"model": "gpt2", "micro_batch_size": 8, "optimizer": "sgd"},
    "gpt2, bf16-mixed": _TOKENS | {"model": "gpt2", "precision": "bf16-mixed"},
    "gpt2, batch 8, checkpointed": _TOKENS | {"model": "gpt2", "micro_batch_size": 8, "activation_checkpointing": True},
    "llama-160m, 64 tokens, batch 2": _TOKENS | {"model": "llama-160m"},
    "bert-base, 128 tokens, batch 4": _SEQUENCES | {"model": "bert-base"},
    "resnet18, 96x96, batch 32": _IMAGES | {"model": "resnet18", "image_size": 96, "micro_batch_size": 32},
    "resnet50, 96x96, batch 16": _IMAGES | {"model": "resnet50", "image_size": 96, "micro_batch_size": 16},
    "vit-b16, 224x224, batch 2": _IMAGES | {"model": "vit-b16", "image_size": 224, "micro_batch_size": 2},
}


def measure(_effort: Effort) -> dict[str, Any]:
    """Bytes by either way, once: memory does not scatter as times do."""
    return {name: _measure(spec) for name, spec in SPECS.items()}


def _measure(spec: Spec) -> dict[str, Any]:
    estimated = ask_estimate(spec)
    summary = run_engine(spec).summary
    measured_bytes = summary["peak_rss_bytes"] - summary["rss_before_build_bytes"]
    return {
        "estimate": estimated,
        "estimated_bytes": estimated["peak_bytes"],
        "measured_bytes": measured_bytes,
        "error": estimated["peak_bytes"] / measured_bytes - 1,
    }


def ask_estimate(spec: Spec) -> dict[str, Any]:
    """What `python -m workers.engine estimate` prints for a spec."""
    with engine_command(spec, "estimate") as command:
        ended = subprocess.run(command, cwd=ROOT, env=environment(1), capture_output=True, text=True)
    if ended.returncode != 0:
        raise Failed(ended.stderr)
    return json.loads(ended.stdout)  # type: ignore[no-any-return]


def judge(row: dict[str, Any]) -> str:
    """Whether the estimate holds what it promises."""
    if row["measured_bytes"] < CLAIMED_ABOVE_BYTES:
        return "not claimed"
    return "yes" if abs(row["error"]) <= AIM else "no"


def table(results: dict[str, Any]) -> list[str]:
    """The results as Markdown lines."""
    lines = ["| Peak memory on a CPU | Estimated, MiB | Measured, MiB | Error | Within 15 % |", "|---|---|---|---|---|"]
    for name, row in results.items():
        sizes = " | ".join(f"{row[key] / 2**20:.0f}" for key in ("estimated_bytes", "measured_bytes"))
        lines.append(f"| {name} | {sizes} | {100 * row['error']:+.1f} % | {judge(row)} |")
    return lines
