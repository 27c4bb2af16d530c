"""The engine as a child process: how it is started, and what it says while it runs."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
from django.conf import settings
from pydantic import ValidationError

from jobs.attempt_files import AttemptFiles
from jobs.contract.events import Event, parse_event
from jobs.models import Device
from workers.disk import give_back
from workers.engine.spare import Assignment
from workers.processes import is_alive

# The engine runs models and data sets that a team may add, so it does not get to see the site's secrets.
_SECRET_VARIABLES = (
    "PITWALL_SECRET_KEY",
    "PITWALL_DATABASE_URL",
    "PITWALL_REDIS_URL",
    "PITWALL_METRICS_TOKEN",
    "DJANGO_SETTINGS_MODULE",
)

_READ_BYTES = 2**20
_KEPT_BYTES = 16 * 2**20  # of a file's beginning, and of a log's end
_GIVE_BACK_BYTES = 2**20  # what is given back at once


def start_engine(
    files: AttemptFiles,
    devices: Sequence[Device],
    resume: Path | None = None,
    place: Sequence[str] = (),
    spare: subprocess.Popen[bytes] | None = None,
) -> subprocess.Popen[bytes]:
    """Start the engine on the leased devices; it ends when this process does. Its output goes to the log file.

    `place` are its arguments about other nodes. A spare that lives becomes the engine.
    """
    arguments = ["run", str(files.spec), "--events", str(files.events), "--artifacts", str(files.artifacts)]
    arguments += ["--resume", str(resume)] if resume else []
    arguments += place
    environment = environment_for_engine(devices)
    with files.log.open("ab") as log:
        if spare and _take_on(spare, Assignment(arguments=arguments, environment=environment, log=files.log)):
            return spare
        return _start([*engine_command(), *arguments], environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def start_spare_engine() -> subprocess.Popen[bytes]:
    """Start an engine that gets warm and waits; what it says meanwhile goes where this process's output goes."""
    return _start([*engine_command(), "spare"], environment_for_engine([]), stdin=subprocess.PIPE)


def _start(command: Sequence[str], environment: dict[str, str], **files: Any) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(command, env=environment, **files)
    _offer_to_oom_killer(process.pid)
    return process


def _take_on(spare: subprocess.Popen[bytes], assignment: Assignment) -> bool:
    """Tell a spare engine its run; False where it has ended.

    While the last threads of a killed process go, its pipe still takes what is written, and it cannot be waited for.
    """
    assert spare.stdin is not None  # noqa: S101 - opened as a pipe
    try:
        with spare.stdin as pipe:
            pipe.write(assignment.to_line())
    except BrokenPipeError:
        return False
    return spare.poll() is None and is_alive(psutil.Process(spare.pid))


def engine_command() -> list[str]:
    """How the engine is called, before its own arguments."""
    return [sys.executable, "-m", settings.ENVIRONMENT.engine_module]


def environment_for_engine(devices: Sequence[Device]) -> dict[str, str]:
    """The variables of the engine: only the leased GPUs are visible, and the site's secrets are not."""
    gpus = [device.uuid or str(device.index) for device in devices if device.kind == "cuda"]
    return environment_without_secrets() | {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": ",".join(gpus),
        "PYTHONUNBUFFERED": "1",
    }


def environment_without_secrets() -> dict[str, str]:
    """The variables of any process of the engine; it ends when this one does."""
    open_ones = {name: value for name, value in os.environ.items() if name not in _SECRET_VARIABLES}
    return open_ones | {"PITWALL_PARENT_PID": str(os.getpid())}


def _offer_to_oom_killer(pid: int) -> None:
    """Let the kernel end a training job before it ends anything else on the host."""
    try:
        Path(f"/proc/{pid}/oom_score_adj").write_text("1000")
    except OSError:
        return  # it ended already, or the container forbids it: a preference, not a need


class EventReader:
    """Reads an engine's event file as it grows. What was not taken yet stays in the file: that is the spool."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._given_back = _KEPT_BYTES

    @property
    def backlog_bytes(self) -> int:
        """How much has not been read yet."""
        return self._path.stat().st_size - self._offset if self._path.exists() else 0

    def read_new(self) -> list[Event]:
        """The events on lines that were completed since the last call, at most about a mebibyte of them."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._offset)
            data = file.read(_READ_BYTES)
            if b"\n" not in data:
                data += file.readline()  # a line longer than what is read at once
        complete = data[: data.rfind(b"\n") + 1]
        self._offset += len(complete)
        self._give_back()
        return [event for line in complete.splitlines() if (event := _parse(line)) is not None]

    def _give_back(self) -> None:
        """Free what was read, but for the beginning, so that only the spool takes up space."""
        if self._offset - self._given_back >= _GIVE_BACK_BYTES:
            give_back(self._path, self._given_back, self._offset)
            self._given_back = self._offset


def _parse(line: bytes) -> Event | None:
    """The event on a line; None for a line that a killed or full-disk engine could not write whole."""
    try:
        return parse_event(line)
    except ValidationError:
        return None


class LogKeeper:
    """Keeps the beginning and the end of an engine's log, however much the engine prints."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._given_back = _KEPT_BYTES

    def shorten(self) -> None:
        """Free the middle of a log that has grown too long."""
        end = self._path.stat().st_size - _KEPT_BYTES if self._path.exists() else 0
        if end - self._given_back >= _GIVE_BACK_BYTES:
            give_back(self._path, self._given_back, end)
            self._given_back = end
