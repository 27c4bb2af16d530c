"""What the engine's tests share: a run in this process, and a run as a process of its own."""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs.contract.events import Event, Finished, Points, Started, parse_event
from jobs.contract.metrics import Summary
from jobs.contract.spec import TrainSpec
from workers.engine.files import RunFiles
from workers.engine.parallel import Rank
from workers.engine.report import Report
from workers.engine.run import run

ROOT = Path(__file__).resolve().parents[2]
DIGITS = {"model": "mlp", "dataset": "digits", "device": "cpu", "micro_batch_size": 16, "num_steps": 20}
DIVERGING = {
    "model": "gpt-tiny",
    "dataset": "stdlib-text",
    "micro_batch_size": 4,
    "num_steps": 30,
    "optimizer": "sgd",
    "learning_rate": 100,
}


class Recording:
    """A stream that keeps events."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)


@dataclass
class Run:
    """What a run told."""

    events: list[Event]
    summary: Summary
    exit_code: int = 0
    stderr: str = ""

    def points(self, series: str) -> dict[int, float]:
        """Step to value."""
        events = [event for event in self.events if isinstance(event, Points) and series in event.series]
        return {step: value for event in events for step, value in zip(event.steps, event.series[series], strict=True)}

    @property
    def losses(self) -> list[float]:
        return list(self.points("train_loss").values())

    @property
    def started(self) -> Started:
        return next(event for event in self.events if isinstance(event, Started))

    @property
    def finished(self) -> Finished:
        event = self.events[-1]
        assert isinstance(event, Finished)
        return event


def train(files: RunFiles = RunFiles(), **fields: Any) -> Run:  # noqa: B008 - frozen
    """A run of the default digits job with `fields` changed, in this process."""
    recording = Recording()
    report = Report(recording)
    run(TrainSpec(**DIGITS | fields), report, Rank(), time.perf_counter(), files)
    return Run(recording.events, report.summary)


def write_spec(folder: Path, **fields: Any) -> Path:
    path = folder / "spec.json"
    path.write_text(json.dumps(DIGITS | fields))
    return path


def run_command(spec: Path, *options: str, environment: dict[str, str] | None = None, **popen: Any) -> Run:
    """`python -m workers.engine run` to its end."""
    command = [sys.executable, "-m", "workers.engine", "run", str(spec), *options]
    ended = subprocess.run(
        command, cwd=ROOT, env=os.environ | (environment or {}), capture_output=True, timeout=120, check=False, **popen
    )
    events = [parse_event(line) for line in ended.stdout.splitlines()]
    return Run(events, events[-1].summary if events else Summary(), ended.returncode, ended.stderr.decode())
