"""Compilation with an empty cache, and again with what the first job left there."""

import tempfile
from statistics import median
from typing import Any

from benchmarks.effort import Effort
from benchmarks.processes import run_engine
from benchmarks.work import WORKLOADS

_SHOWN = ("first_step_s", "num_graphs", "num_compile_cache_hits", "num_compile_cache_misses", "steady_step_time_ms")


def measure(effort: Effort) -> dict[str, Any]:
    """Per workload: what the first job and the second one with the same spec report, in fresh processes."""
    return {
        name: [_measure(name) for _ in range(effort.num_repeats)] for name in ("mlp/digits", "gpt-tiny/stdlib-text")
    }


def _measure(workload: str) -> dict[str, Any]:
    spec = WORKLOADS[workload] | {"num_steps": 30, "compile_mode": "default"}
    with tempfile.TemporaryDirectory() as cache:
        jobs = {job: run_engine(spec, TORCHINDUCTOR_CACHE_DIR=cache).summary for job in ("cold", "warm")}
    return {job: {name: summary[name] for name in _SHOWN} for job, summary in jobs.items()}


def table(results: dict[str, Any]) -> list[str]:
    """The results as Markdown lines."""
    lines = [
        "| Compile (default) | Cold: first step, s | Warm: first step, s | Cold over warm | Hits, cold and warm |",
        "|---|---|---|---|---|",
    ]
    for name, repeats in results.items():
        cold_s, warm_s = (median(repeat[job]["first_step_s"] for repeat in repeats) for job in ("cold", "warm"))
        hits = " and ".join(str(repeats[0][job]["num_compile_cache_hits"]) for job in ("cold", "warm"))
        lines.append(f"| {name} | {cold_s:.1f} | {warm_s:.1f} | {cold_s / warm_s:.1f} | {hits} |")
    return lines
