"""The runs list and the boards among 1,000, 100,000 and 1,000,000 runs: how long does a page take, and is it flat?

Each size is a process with a database of its own (`runs_measured.py`), for Django reads its settings once; SQLite and,
where there is a server, PostgreSQL. `RUNS_SIZES=1000,20000` takes other sizes, `RUNS_DATABASES=sqlite` one of the two.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.effort import QUICK, Effort
from benchmarks.load import database
from benchmarks.processes import ROOT, Failed, environment
from tests.system.postgres import find_programs

SIZES = (1_000, 100_000, 1_000_000)
QUICK_SIZES = (1_000, 20_000)
NUM_REQUESTS = 60

PAGE_SIZE = 100
AIM_P95_MS = 60
AIM_BOARD_P95_MS = 100
AIM_GROWTH = 2.0


def measure(effort: Effort) -> dict[str, Any]:
    """Milliseconds of each list by database and number of runs."""
    sizes = [int(size) for size in os.environ.get("RUNS_SIZES", "").split(",") if size]
    sizes = sizes or [*(QUICK_SIZES if effort is QUICK else SIZES)]
    kinds = ["sqlite", *(["postgresql"] if find_programs() else [])]
    kinds = [kind for kind in kinds if kind in os.environ.get("RUNS_DATABASES", kind)]
    return {kind: {str(size): _measured(kind, size) for size in sizes} for kind in kinds}


def _measured(kind: str, size: int) -> dict[str, Any]:
    with database(kind) as url, tempfile.TemporaryDirectory(prefix="pw-") as folder:
        variables = {
            "PITWALL_VAR": str(Path(folder) / "var"),
            "PITWALL_DATABASE_URL": url,
            "PITWALL_REDIS_URL": f"unix://{folder}/redis.sock",
            "PITWALL_LOG_LEVEL": "ERROR",
        }
        command = [sys.executable, "-m", "benchmarks.runs_measured", str(size), str(NUM_REQUESTS)]
        ran = subprocess.run(command, cwd=ROOT, env=environment(None, **variables), capture_output=True, text=True)
    if ran.returncode != 0:
        raise Failed(ran.stderr[-2000:])
    return json.loads(ran.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def table(results: dict[str, Any]) -> list[str]:
    """The results as Markdown lines: p95 by size, and how the largest compares with the smallest."""
    lines: list[str] = []
    for kind, by_size in results.items():
        sizes = list(by_size)
        heads = " | ".join(f"{int(size):,} runs" for size in sizes)
        lines += [f"| {kind}, p95 ms of a page of 100 | {heads} | Growth | |", f"|---|{'---|' * len(sizes)}---|---|"]
        lines += [_row(name, [by_size[size]["lists"][name] for size in sizes]) for name in by_size[sizes[0]]["lists"]]
        lines += [
            _board_row(name, [by_size[size]["boards"][name] for size in sizes]) for name in by_size[sizes[0]]["boards"]
        ]
        lines.append("")
    return lines


def _board_row(name: str, cells: list[dict[str, Any]]) -> str:
    times = [cell["p95_ms"] for cell in cells]
    told = f"{'within' if max(times) < AIM_BOARD_P95_MS else 'over'} {AIM_BOARD_P95_MS} ms"
    return f"| {name} | {' | '.join(f'{time:.1f}' for time in times)} | {times[-1] / times[0]:.2f} | {told} |"


def _row(name: str, cells: list[dict[str, Any]]) -> str:
    """Growth is that of a whole page: among 1,000 runs some lists have only a few rows, which are read sooner."""
    times = [cell["p95_ms"] for cell in cells]
    whole = [cell["p95_ms"] for cell in cells if cell["num_rows"] == PAGE_SIZE]
    growth = times[-1] / whole[0] if whole else 1.0
    verdict = "within" if max(times) < AIM_P95_MS and growth <= AIM_GROWTH else "over"
    told = verdict if cells[0]["is_claimed"] else "stated only"
    return f"| {name} | {' | '.join(f'{time:.1f}' for time in times)} | {growth:.2f} | {told} |"
