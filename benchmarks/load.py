"""The queue under load: claims and its page among 10,000 waiting jobs, 50 supervisors on one SQLite file.

Each measurement is a process with a database of its own (`load_measured.py`), for Django reads its settings once.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.effort import Effort
from benchmarks.processes import ROOT, Failed, environment
from tests.system.postgres import PostgresServer, find_programs

NUM_WAITING = 10_000
NUM_CLAIMS = 500
NUM_PAGES = 100
NUM_SUPERVISORS = 50
SUPERVISED_S = 20

AIM_CLAIM_P95_MS = 20
AIM_PAGE_P95_MS = 200


def measure(_effort: Effort) -> dict[str, Any]:
    """Milliseconds and counts by database; PostgreSQL only where there is a server."""
    results: dict[str, Any] = {}
    with database("sqlite") as url:
        results["claim, SQLite"] = _measured(url, "claims", NUM_WAITING, NUM_CLAIMS)
    with database("sqlite") as url:
        results["queue page, SQLite"] = _measured(url, "queue_page", NUM_WAITING, NUM_PAGES)
    with database("sqlite") as url:
        results["heartbeats"] = _measured(url, "heartbeats", NUM_SUPERVISORS, SUPERVISED_S)
    if find_programs():
        with database("postgresql") as url:
            results["claim, PostgreSQL"] = _measured(url, "claims", NUM_WAITING, NUM_CLAIMS)
        with database("postgresql") as url:
            results["queue page, PostgreSQL"] = _measured(url, "queue_page", NUM_WAITING, NUM_PAGES)
    return results


@contextmanager
def database(kind: str) -> Iterator[str]:
    """The address of an empty database; empty for SQLite, which is a file in the folder of state."""
    programs = find_programs() if kind == "postgresql" else None
    if programs is None:
        yield ""
        return
    server = PostgresServer(programs)
    try:
        server.start()
        yield server.create_database("load")
    finally:
        server.remove()


def _measured(database_url: str, what: str, *numbers: int) -> dict[str, Any]:
    return measured(database_url, "benchmarks.load_measured", what, *map(str, numbers))


def measured(database_url: str, module: str, *arguments: str) -> dict[str, Any]:
    """What a module prints that measures in a process and a database of its own."""
    with tempfile.TemporaryDirectory(prefix="pw-") as folder:
        variables = {
            "PITWALL_VAR": str(Path(folder) / "var"),
            "PITWALL_DATABASE_URL": database_url,
            "PITWALL_REDIS_URL": f"unix://{folder}/redis.sock",
            "PITWALL_ENGINE_MODULE": "tests.stand_in_engine",
            "PITWALL_LOG_LEVEL": "ERROR",
            "PITWALL_SPARES": "0",
        }
        command = [sys.executable, "-m", module, *arguments]
        ran = subprocess.run(command, cwd=ROOT, env=environment(None, **variables), capture_output=True, text=True)
        if ran.returncode != 0:
            raise Failed(ran.stderr[-2000:])
        return json.loads(ran.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def table(results: dict[str, Any]) -> list[str]:
    """The results as Markdown lines."""
    lines = ["| Load | Median | p95 | p99 | |", "|---|---|---|---|---|"]
    for name, row in results.items():
        if aim_ms := {"claim": AIM_CLAIM_P95_MS, "queue page": AIM_PAGE_P95_MS}.get(name.partition(",")[0]):
            verdict = "within" if row["p95_ms"] < aim_ms else "over"
            lines.append(_times(f"{name}: {row['num_waiting']} wait, ms", row, f"{verdict} {aim_ms} ms"))
    beats = results["heartbeats"]
    told = f"{beats['num_locked']} times locked in {beats['num_writes']} writes"
    lines.append(_times(f"a write of one of {beats['num_supervisors']} supervisors, SQLite, ms", beats, told))
    return lines


def _times(name: str, row: dict[str, Any], told: str) -> str:
    return f"| {name} | {row['p50_ms']:.1f} | {row['p95_ms']:.1f} | {row['p99_ms']:.1f} | {told} |"
