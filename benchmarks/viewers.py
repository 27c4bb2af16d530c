"""200 people watch one run while 20 runs write: how far behind is what they see, and what does the web process need?

The measurement is a process with a database of its own (`viewers_measured.py`), for Django reads its settings once.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.effort import QUICK, Effort
from benchmarks.processes import ROOT, Failed, environment

NUM_VIEWERS = 200
NUM_RUNS = 20
WATCHED_S = 30

AIM_BEHIND_S = 1.0


def measure(effort: Effort) -> dict[str, Any]:
    """Seconds behind, over all points that all viewers got; CPU share and memory of the web process."""
    watched_s = 5 if effort is QUICK else WATCHED_S
    with tempfile.TemporaryDirectory(prefix="pw-") as folder:
        variables = {"PITWALL_VAR": str(Path(folder) / "var"), "PITWALL_LOG_LEVEL": "ERROR"}
        command = [sys.executable, "-m", "benchmarks.viewers_measured", *map(str, (NUM_VIEWERS, NUM_RUNS, watched_s))]
        ran = subprocess.run(command, cwd=ROOT, env=environment(None, **variables), capture_output=True, text=True)
    if ran.returncode != 0:
        raise Failed(ran.stderr[-2000:])
    return json.loads(ran.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def table(results: dict[str, Any]) -> list[str]:
    """The results as Markdown lines."""
    verdict = "within" if results["most_behind_s"] <= AIM_BEHIND_S else "over"
    behind = f"{results['p50_behind_s']:.2f} | {results['p95_behind_s']:.2f} | {results['most_behind_s']:.2f}"
    return [
        f"| {results['num_viewers']} viewers of one run, {results['num_runs']} runs write | Median | p95 | Most | |",
        "|---|---|---|---|---|",
        f"| behind, s | {behind} | {verdict} {AIM_BEHIND_S:g} s |",
        f"| points that did not arrive | | | {results['num_missing']} | of {results['num_expected']} |",
        f"| web process, share of one core | {results['web_cpu_share']:.0%} | | | |",
        f"| web process, resident memory, MB | {results['web_rss_bytes'] / 1e6:.0f} | | | |",
    ]
