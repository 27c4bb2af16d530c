"""From a submit to the end of the first training step: on a warm worker, on a cold one, and without Pitwall at all.

The same small job for all, on an idle machine. Of the program the clock starts before the request is sent; of a
script, when its process is started. It ends when the line about the first step can be read.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import beside
from benchmarks.effort import Effort
from benchmarks.processes import ROOT, Failed, environment, tail
from benchmarks.work import NUM_THREADS, WORKLOADS
from tests.system.pitwall import Pitwall, running, wait_until

AIM_S = 0.15
NUM_STARTS = 7  # for each repeat of the effort
_SETTLE_S = 1.0  # after whatever was before
_POLL_S = 0.001
_TIMEOUT_S = 60.0
_SPEC = WORKLOADS["mlp/digits"] | {"num_steps": 3000}
_LOOPS = {
    "python train.py": ("plain", []),
    "accelerate launch": ("accelerate", ["accelerate.commands.launch", "--cpu", "--num_processes", "1", "-m"]),
    "Lightning Trainer": ("lightning_trainer", []),
}


def measure(effort: Effort) -> dict[str, Any]:
    """Seconds to the first step, and what a spare costs the job that runs beside it."""
    num = NUM_STARTS * effort.num_repeats
    found = {"submit, warm": _submits(num, num_spares=1), "submit, cold": _submits(num, num_spares=0)}
    for name, (loop, launcher) in _LOOPS.items():
        command = [sys.executable, "-m", *launcher, "benchmarks.loops", loop, json.dumps(_SPEC)]
        found[name] = [_start_script(command) for _ in range(num)]
    starts = {name: {"median_s": median(times_s), "raw_s": times_s} for name, times_s in found.items()}
    return {"starts": starts, "beside": beside.measure(effort)}


def _submits(num: int, num_spares: int) -> list[float]:
    with _idle_installation(num_spares) as pitwall:
        times_s = []
        for _number in range(num):
            wait_until(lambda: len(pitwall.warm_spares()) == num_spares, _TIMEOUT_S, "a warm spare")
            time.sleep(_SETTLE_S)
            times_s.append(_submit(pitwall))
        return times_s


@contextmanager
def _idle_installation(num_spares: int) -> Iterator[Pitwall]:
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Path(folder) / "var", PITWALL_TIME_SCALE="1", PITWALL_SPARES=str(num_spares)) as pitwall,
    ):
        for job in pitwall.client.get("/jobs").raise_for_status().json()["jobs"]:
            pitwall.client.post(f"/jobs/{job['id']}/cancel")
        wait_until(lambda: not pitwall.sql("SELECT id FROM jobs_job WHERE outcome IS NULL"), _TIMEOUT_S, "peace")
        yield pitwall


def _submit(pitwall: Pitwall) -> float:
    """Seconds until the job's first step is told; its end is waited for, so that the next one finds peace."""
    before = set(_event_files(pitwall))
    began_s = time.perf_counter()
    job_id = pitwall.submit(**_SPEC)
    while not (written := set(_event_files(pitwall)) - before):
        time.sleep(_POLL_S)
    (events,) = written
    while b'"train_loss"' not in events.read_bytes():
        time.sleep(_POLL_S)
    took_s = time.perf_counter() - began_s
    pitwall.wait_for(job_id, "succeeded")
    return took_s


def _event_files(pitwall: Pitwall) -> Iterator[Path]:
    return (pitwall.var / "attempts").glob("*/events.jsonl")


def _start_script(command: Sequence[str]) -> float:
    """Seconds until the first step: its line comes some steps later, and says how many seconds those took."""
    with tempfile.TemporaryFile() as log:
        time.sleep(_SETTLE_S)
        began_s = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment(NUM_THREADS), stdout=subprocess.PIPE, stderr=log, start_new_session=True
        )
        with process:
            assert process.stdout is not None
            lines = (line for line in process.stdout if line.startswith(b'{"type": "points"'))
            line = next(lines, None)
            took_s = time.perf_counter() - began_s
            process.kill()
        if line is None:
            raise Failed(tail(log))
    wall_s = json.loads(line)["wall_s"]
    return took_s - (wall_s[-1] - wall_s[0])


def table(results: dict[str, Any]) -> list[str]:
    """The results as Markdown lines."""
    lines = ["| To the end of the first step | Median, s | Spread | |", "|---|---|---|---|"]
    for name, row in results["starts"].items():
        spread = f"{min(row['raw_s']):.2f} to {max(row['raw_s']):.2f}"
        lines.append(f"| {name} | {row['median_s']:.3f} | {spread} | {_verdict(name, row['median_s'])} |")
    return [*lines, "", *beside.table(results["beside"])]


def _verdict(name: str, median_s: float) -> str:
    if name != "submit, warm":
        return ""
    return f"{AIM_S:g} {'reached' if median_s <= AIM_S else 'missed'}"
