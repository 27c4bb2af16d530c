"""Processes that train side by side and take turns: only one runs at any time, the others are stopped (SIGSTOP).

A machine's speed drifts, on a shared one by several percent within seconds. Runs one after the other see that drift as
a difference; slices of half a second in the order A B B A do not. The processes are whole programs, started afresh
for each repeat, and know nothing of it. Their progress is what arrives on their standard output (the engine's `points`
lines; the other loops write the same), stamped with the time for which that process has been allowed to run, and with
the CPU time that it took: less of a neighbour shows in that one, so it is kept beside the wall time.
"""

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import psutil

from benchmarks.processes import ROOT, Failed, environment, tail

READY_STEP = 11  # the engine's first step and its ten of warm-up
START_TIMEOUT_S = 180.0


@dataclass(frozen=True)
class Course:
    """How long each process runs: `num_rounds` slices."""

    num_rounds: int = 8
    slice_s: float = 0.5


@dataclass(frozen=True)
class Progress:
    """What one process did while it was timed: steps, the seconds it ran for, and its losses from the first step on."""

    num_steps: int
    wall_s: float
    cpu_s: float
    losses: list[float]

    @property
    def step_time_ms(self) -> float:
        """Mean wall time of a step."""
        return 1e3 * self.wall_s / self.num_steps

    @property
    def step_cpu_time_ms(self) -> float:
        """Mean CPU time of a step, over all threads."""
        return 1e3 * self.cpu_s / self.num_steps


class Piece(NamedTuple):
    """What arrived at once: after how long of being allowed to run, and after how much CPU time."""

    wall_s: float
    cpu_s: float
    data: bytes


class Mark(NamedTuple):
    """A whole line about the training loss: when its end came, its last step, its losses."""

    wall_s: float
    cpu_s: float
    step: int
    losses: list[float]


@dataclass
class Runner:
    """One process: lines with the allowed time at which they came."""

    name: str
    process: subprocess.Popen[bytes]
    log: Any
    allowed_s: float = 0.0
    pieces: list[Piece] = field(default_factory=list)

    def fileno(self) -> int:
        """For `select`."""
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def read(self, allowed_s: float) -> None:
        """Take what has arrived. Raises `Failed` where the process has ended: none is meant to end by itself."""
        piece = os.read(self.fileno(), 2**20)
        if not piece:
            self.process.wait()
            raise Failed(f"{self.name} ended early.\n{tail(self.log)}")
        used = psutil.Process(self.process.pid).cpu_times()
        self.pieces.append(Piece(allowed_s, used.user + used.system, piece))

    def signal(self, number: int) -> None:
        """To the process and its children: it leads a session of its own."""
        os.killpg(self.process.pid, number)

    def run_for(self, seconds: float) -> None:
        """Let it run for a slice, and note what arrives meanwhile."""
        began_s = time.perf_counter()
        self.signal(signal.SIGCONT)
        while (left_s := began_s + seconds - time.perf_counter()) > 0:
            if select.select([self], [], [], left_s)[0]:
                self.read(self.allowed_s + time.perf_counter() - began_s)
        self.signal(signal.SIGSTOP)
        self.allowed_s += time.perf_counter() - began_s

    def end(self) -> None:
        """It is not needed any more, stopped or not, or has ended already."""
        with suppress(ProcessLookupError):
            self.signal(signal.SIGKILL)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.log.close()


def race(
    commands: Mapping[str, Sequence[str]], num_threads: int, course: Course, *, backwards: bool
) -> dict[str, Progress]:
    """Start all, wait until each has warmed up, let them take turns, and end them.

    Commands must train for longer than the course. `backwards` lets the last one begin, as every second repeat should.
    """
    with ExitStack() as stack:
        runners = [start(name, command, num_threads) for name, command in commands.items()]
        for runner in runners:
            stack.callback(runner.end)
        wait_until_ready(runners)
        for number in range(course.num_rounds):
            for runner in runners if (number % 2 == 0) is not backwards else runners[::-1]:
                runner.run_for(course.slice_s)
        return {runner.name: progress_of(runner.pieces) for runner in runners}


def start(name: str, command: Sequence[str], num_threads: int) -> Runner:
    """Start it; nothing of it is timed yet."""
    log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by Runner.end
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment(num_threads), stdout=subprocess.PIPE, stderr=log, start_new_session=True
    )
    return Runner(name, process, log)


def wait_until_ready(runners: Sequence[Runner]) -> None:
    """All start at once; who has warmed up is stopped. Nothing of this is timed: it counts as allowed time zero."""
    waiting, until_s = list(runners), time.perf_counter() + START_TIMEOUT_S
    while waiting:
        ready = select.select(waiting, [], [], max(0.0, until_s - time.perf_counter()))[0]
        if not ready:
            raise Failed(f"{waiting[0].name} did not begin to train within {START_TIMEOUT_S:.0f} s.")
        for runner in ready:
            runner.read(0.0)
            if _last_step(runner.pieces) >= READY_STEP:
                runner.signal(signal.SIGSTOP)
                waiting.remove(runner)


def _last_step(pieces: Sequence[Piece]) -> int:
    marks = read_marks(pieces)
    return marks[-1].step if marks else 0


def progress_of(pieces: Sequence[Piece]) -> Progress:
    """From the first mark of the timed part to the last one. Raises `Failed` where there are not two."""
    marks = read_marks(pieces)
    timed = [mark for mark in marks if mark.wall_s > 0]
    if len(timed) < 2:
        raise Failed("A process reported less than twice while it was timed; give it more rounds.")
    first, last = timed[0], timed[-1]
    return Progress(
        num_steps=last.step - first.step,
        wall_s=last.wall_s - first.wall_s,
        cpu_s=last.cpu_s - first.cpu_s,
        losses=[loss for mark in marks for loss in mark.losses],
    )


def read_marks(pieces: Sequence[Piece]) -> list[Mark]:
    """The lines about the training loss; a line counts when its end has come."""
    marks, rest = [], b""
    for wall_s, cpu_s, data in pieces:
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            event = json.loads(line)
            if event["type"] == "points" and "train_loss" in event["series"]:
                marks.append(Mark(wall_s, cpu_s, event["steps"][-1], event["series"]["train_loss"]))
    assert all(one.step < other.step for one, other in pairwise(marks))
    return marks
