"""What a warm spare costs the job that runs beside it: the same job with and without one, in turns.

The job is stopped while a spare gets warm, as the worker too starts one only while nothing runs; from then on the spare
waits, and the job is timed.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import psutil

from benchmarks.effort import Effort
from benchmarks.intervals import judge_against_one, ratio_interval
from benchmarks.processes import ROOT, environment
from benchmarks.turns import Runner, read_marks, start, wait_until_ready
from benchmarks.work import NUM_THREADS, commands_of
from tests.system.pitwall import wait_until
from workers.engine.spare import WARM_NAME

WORKLOADS = ("mlp/digits", "convnet/digits")
_SLICE_S = 2.0
_WARM_TIMEOUT_S = 60.0


def measure(effort: Effort) -> dict[str, Any]:
    """Per workload the ratio of speeds, above 1 where the job is faster beside a spare than without one."""
    return {workload: _measure(workload, effort) for workload in WORKLOADS}


def _measure(workload: str, effort: Effort) -> dict[str, Any]:
    repeats: list[tuple[float, float]] = []
    with commands_of(workload, ["engine"]) as commands:
        runner = start("engine", commands["engine"], NUM_THREADS)
        try:
            wait_until_ready([runner])
            while not effort.stopping.is_enough(_ratios(repeats)):
                repeats.append(_time_both(runner, spare_first=len(repeats) % 2 == 1))
        finally:
            runner.end()
    interval = ratio_interval(_ratios(repeats))
    return {
        "raw_step_times_ms": {"with": [one for one, _ in repeats], "without": [other for _, other in repeats]},
        "ratio": interval.ratio,
        "low": interval.low,
        "high": interval.high,
        "verdict": judge_against_one(interval),
    }


def _ratios(repeats: list[tuple[float, float]]) -> list[float]:
    return [without_ms / with_ms for with_ms, without_ms in repeats]


def _time_both(runner: Runner, *, spare_first: bool) -> tuple[float, float]:
    """Ms a step with a spare and without one."""
    times_ms = {has_spare: _time(runner, has_spare=has_spare) for has_spare in (spare_first, not spare_first)}
    return times_ms[True], times_ms[False]


def _time(runner: Runner, *, has_spare: bool) -> float:
    with _spare() if has_spare else nullcontext():
        began_s = runner.allowed_s
        runner.run_for(_SLICE_S)
    first, *_between, last = (mark for mark in read_marks(runner.pieces) if mark.wall_s > began_s)
    return 1e3 * (last.wall_s - first.wall_s) / (last.step - first.step)


@contextmanager
def _spare() -> Iterator[None]:
    """A supervisor that waits, with its engine, as the worker starts it."""
    with tempfile.TemporaryDirectory() as folder:
        supervisor = subprocess.Popen(
            [sys.executable, "-m", "workers.supervisor", "spare"],
            cwd=ROOT,
            env=environment(None, PITWALL_VAR=str(Path(folder) / "var")),
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            wait_until(lambda: _is_warm(supervisor.pid), _WARM_TIMEOUT_S, "a warm spare")
            yield
        finally:
            os.killpg(supervisor.pid, signal.SIGKILL)
            supervisor.communicate()


def _is_warm(supervisor_pid: int) -> bool:
    return any(process.name() == WARM_NAME for process in psutil.Process(supervisor_pid).children())


def table(results: dict[str, Any]) -> list[str]:
    """The results as Markdown lines."""
    lines = ["| Beside a spare the job is | Ratio of speeds | 95 % interval | |", "|---|---|---|---|"]
    for workload, row in results.items():
        cells = [workload, f"{row['ratio']:.3f}", f"{row['low']:.3f} to {row['high']:.3f}", row["verdict"]]
        lines.append(f"| {' | '.join(cells)} |")
    return lines
