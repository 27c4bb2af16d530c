"""Where events go: one JSON object per line, on a file descriptor that nothing else writes to."""

import os
import threading
from pathlib import Path

from jobs.contract.errors import OutputUnusable
from jobs.contract.events import Event


class EventStream:
    """Writes events to a file descriptor that it owns, each line in one write."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()  # telemetry is told by a thread of its own

    @classmethod
    def on_stdout(cls) -> "EventStream":
        """Take standard output for events alone; whatever a library prints there goes to standard error from now on."""
        fd = os.dup(1)
        os.dup2(2, 1)
        return cls(fd)

    @classmethod
    def on_file(cls, path: Path) -> "EventStream":
        """Append to a file or named pipe; raises `OutputUnusable`."""
        try:
            return cls(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644))
        except OSError as error:
            raise OutputUnusable("--events", path, error.strerror) from error

    def emit(self, event: Event) -> None:
        """Write one event as a line."""
        self.write_line(event.model_dump_json().encode())

    def write_line(self, line: bytes) -> None:
        """Write a line that is JSON already; a pipe may take a long one in pieces."""
        rest = line + b"\n"
        with self._lock:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
