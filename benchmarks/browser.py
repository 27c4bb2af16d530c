"""The comparison page in a real browser: 50 curves, from the click to drawn, and a frame while panning.

The measurement is a process with a database of its own (`browser_measured.py`), for Django reads its settings once.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.effort import QUICK, Effort
from benchmarks.processes import ROOT, Failed, environment

NUM_CURVES = 50
POINTS_PER_CURVE = 10_000

AIM_DRAWN_S = 1.5
AIM_FRAME_MS = 50


def measure(effort: Effort) -> dict[str, Any]:
    """Seconds until all curves are drawn, of fresh loads; milliseconds of the frames while the mouse pans."""
    num_loads = 3 if effort is QUICK else 15
    with tempfile.TemporaryDirectory(prefix="pw-") as folder:
        variables = {"PITWALL_VAR": str(Path(folder) / "var"), "PITWALL_LOG_LEVEL": "ERROR"}
        numbers = map(str, (NUM_CURVES, POINTS_PER_CURVE, num_loads))
        command = [sys.executable, "-m", "benchmarks.browser_measured", *numbers]
        ran = subprocess.run(command, cwd=ROOT, env=environment(None, **variables), capture_output=True, text=True)
    if ran.returncode != 0:
        raise Failed(ran.stderr[-2000:])
    return json.loads(ran.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def table(results: dict[str, Any]) -> list[str]:
    """The results as Markdown lines."""
    drawn, frames = results["drawn_s"], results["frame_ms"]
    return [
        f"| Comparison of {results['num_curves']} curves in a browser | Median | p95 | Aim | |",
        "|---|---|---|---|---|",
        _row("from the click to drawn, s", drawn, AIM_DRAWN_S, 2, "median"),
        # A browser asks for frames also where nothing has moved since: the median may be that of idle ones.
        _row("a frame while panning, ms", frames, AIM_FRAME_MS, 0, "p95"),
    ]


def _row(name: str, measured: dict[str, float], aim: float, digits: int, judged: str) -> str:
    verdict = "within" if measured[judged] <= aim else "over"
    return f"| {name} | {measured['median']:.{digits}f} | {measured['p95']:.{digits}f} | {aim:g} | {verdict} |"
