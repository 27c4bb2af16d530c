"""Every measurement is a fresh process: how one is started, and what the engine says when it runs in one."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
Spec = Mapping[str, Any]


class Failed(Exception):
    """A process that was to be measured ended badly; the text is the end of what it said."""


@dataclass(frozen=True)
class EngineRun:
    """The engine's events, and by an outside clock the seconds at which each line arrived."""

    events: list[dict[str, Any]]
    arrived_s: list[float]

    @property
    def summary(self) -> dict[str, Any]:
        """The figures of the last line."""
        return self.events[-1]["summary"]  # type: ignore[no-any-return]


def environment(num_threads: int | None, **more: str) -> dict[str, str]:
    """This process's environment with the project on the path and, where given, one number of threads for all."""
    threads = {"OMP_NUM_THREADS": str(num_threads)} if num_threads else {}
    return os.environ | {"PYTHONPATH": str(ROOT)} | threads | more


@contextmanager
def engine_command(spec: Spec, verb: str = "run") -> Iterator[list[str]]:
    """The command line with which the engine runs a spec, or does something else with it, and reports on stdout."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spec.json"
        path.write_text(json.dumps(dict(spec)))
        yield [sys.executable, "-m", "workers.engine", verb, str(path)]


def run_engine(spec: Spec, **variables: str) -> EngineRun:
    """Run a spec to its end. Raises `Failed` with the engine's own sentence."""
    with engine_command(spec) as command, tempfile.TemporaryFile() as log:
        env = environment(spec.get("num_threads"), **variables)
        lines, arrived_s = [], []
        with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=log) as process:
            assert process.stdout is not None
            for line in process.stdout:
                arrived_s.append(time.perf_counter())
                lines.append(line)
        if process.returncode != 0:
            raise Failed(tail(log))
    return EngineRun([json.loads(line) for line in lines], arrived_s)


def tail(log: Any, num_characters: int = 2000) -> str:
    """The end of a log file."""
    log.seek(0)
    return log.read().decode(errors="replace")[-num_characters:]  # type: ignore[no-any-return]
