"""The curve store: how fast points are stored and read, how many bytes they take, and MLflow's server at the same work.

Each measurement is a process with a database of its own (`curves_measured.py`), for Django reads its settings once.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import mlflow_peer
from benchmarks.effort import QUICK, Effort
from benchmarks.processes import ROOT, Failed, environment
from tests.system.pitwall import free_port

AIM_PER_S = 1_000_000
AIM_TIMES_MLFLOW = 200
AIM_LIVE_BYTES = 25
AIM_COMPACTED_BYTES = 12
AIMS_P95_MS = {
    "full history, 100,000 points": 120,
    "one zoom level, 1,000,000 points": 40,
    "comparison, 10 runs x 100,000": 150,
    "comparison, 200 runs x 10,000": 400,
}


def measure(effort: Effort) -> dict[str, Any]:
    """Rates, bytes and milliseconds of ours on SQLite, then of MLflow's on SQLite."""
    is_quick = effort is QUICK
    return {
        "ingest": _measured("ingest", 1 if is_quick else 5),
        "bytes": _measured("bytes"),
        "reads": _measured("reads", 20 if is_quick else 100),
        "mlflow": mlflow_peer.measure(free_port(), 2 if is_quick else 100, 1 if is_quick else 5),
    }


def _measured(what: str, *numbers: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="pw-") as folder:
        variables = {"PITWALL_VAR": str(Path(folder) / "var"), "PITWALL_LOG_LEVEL": "ERROR"}
        command = [sys.executable, "-m", "benchmarks.curves_measured", what, *map(str, numbers)]
        ran = subprocess.run(command, cwd=ROOT, env=environment(None, **variables), capture_output=True, text=True)
    if ran.returncode != 0:
        raise Failed(ran.stderr[-2000:])
    return json.loads(ran.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def table(results: dict[str, Any]) -> list[str]:
    """The results as Markdown lines."""
    return [*_ingest_lines(results), "", *_byte_lines(results), "", *_read_lines(results)]


def _ingest_lines(results: dict[str, Any]) -> list[str]:
    lines = ["| Points stored | per s | MLflow, per s | Ratio | |", "|---|---|---|---|---|"]
    for name, row in results["ingest"].items():
        peer = results["mlflow"][name]["median_per_s"]
        ratio = row["median_per_s"] / peer
        reached = row["median_per_s"] >= AIM_PER_S and ratio >= AIM_TIMES_MLFLOW
        verdict = f"{'within' if reached else 'short of'} {AIM_PER_S:,} per s and {AIM_TIMES_MLFLOW} times"
        lines.append(f"| {name} | {row['median_per_s']:,.0f} | {peer:,.0f} | {ratio:,.0f} | {verdict} |")
    return lines


def _byte_lines(results: dict[str, Any]) -> list[str]:
    lines = ["| Bytes a point, with everything around it | live | compacted | |", "|---|---|---|---|"]
    for name, row in results["bytes"].items():
        reached = row["live"] <= AIM_LIVE_BYTES and row["compacted"] <= AIM_COMPACTED_BYTES
        verdict = f"{'within' if reached else 'over'} {AIM_LIVE_BYTES} and {AIM_COMPACTED_BYTES}"
        lines.append(f"| {name} | {row['live']:.1f} | {row['compacted']:.1f} | {verdict} |")
    return [*lines, f"| MLflow | {results['mlflow']['bytes_a_point']:.0f} | | |"]


def _read_lines(results: dict[str, Any]) -> list[str]:
    lines = ["| Read over HTTP, ms | Median | p95 | MB | |", "|---|---|---|---|---|"]
    for name, row in results["reads"].items():
        aim = AIMS_P95_MS[name]
        verdict = f"{'within' if row['p95_ms'] < aim else 'over'} {aim} ms"
        lines.append(
            f"| {name} | {row['p50_ms']:.0f} | {row['p95_ms']:.0f} | {row['num_bytes'] / 1e6:.1f} | {verdict} |"
        )
    peer = statistics.median(results["mlflow"]["full_history_ms"])
    return [*lines, f"| MLflow: full history, 100,000 points, by pages of 25,000 | {peer:,.0f} | | | |"]
