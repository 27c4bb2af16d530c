"""Runs web, broker and worker as one program on one machine, and ends all of it together."""

import contextlib
import fcntl
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import psutil

from workers.processes import become_subreaper, descendants, die_with_parent, end_descendants

logger = logging.getLogger(__name__)

_STOP_GRACE_S = 3.0
_RESTART_PAUSE_S = 1.0


class CannotStart(Exception):
    """Why the program cannot start, in one sentence."""


def require_linux() -> None:
    """Raise where the kernel is not Linux: processes are tied together by calls that only Linux has."""
    if not sys.platform.startswith("linux"):
        raise CannotStart("Pitwall runs on Linux only; on another system use a virtual machine or a container.")


def require_free_port(port: int) -> None:
    """Raise where something listens on the port already."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise CannotStart(
                f"Port {port} on 127.0.0.1 is taken, perhaps by another Pitwall. Stop that one or set PORT to another."
            ) from error


@contextlib.contextmanager
def exclusive_use(var: Path) -> Iterator[None]:
    """Hold the state folder for this program alone; raises `CannotStart` while another one holds it."""
    with (var / "run.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise CannotStart(
                f"Another Pitwall is using {var}. Stop it or set PITWALL_VAR to another folder."
            ) from error
        yield


@dataclass
class Service:
    """One long-running command; it is started again when it ends by itself."""

    name: str
    command: list[str]
    log: Path
    environment: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0

    def start(self) -> None:
        """Start it in a session of its own, so that Ctrl-C reaches it only through the launcher."""
        self.started_at = time.monotonic()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent,
                env=os.environ | self.environment,
            )

    def revive(self) -> bool:
        """Start it again if it has ended; returns whether it had."""
        if self.process is None or self.process.poll() is None:
            return False
        if time.monotonic() - self.started_at < _RESTART_PAUSE_S:
            return False
        self.start()
        return True


class Launcher:
    """The services in the order of their start; `run` returns when the user asks for the end."""

    def __init__(self, services: list[Service]) -> None:
        self.services = services
        self.stopping = False

    def start(self) -> None:
        """Start everything. Supervisors that lose their worker become this process's children."""
        become_subreaper()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._stop)
        for service in self.services:
            service.start()

    def watch(self) -> None:
        """Keep everything running until a signal says otherwise."""
        while not self.stopping:
            for service in self.services:
                if service.revive():
                    logger.warning("the %s had ended and was started again; see %s", service.name, service.log)
            time.sleep(0.2)

    def wait_for(self, port: int, timeout_s: float) -> bool:
        """Wait until something listens on the port; False where that takes too long or the user asked for the end."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline and not self.stopping:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                return True
            time.sleep(0.1)
        return False

    def stop(self) -> None:
        """End every process below this one: supervisors and engines too, whatever session they are in."""
        self.stopping = True
        broker = self.services[0].process
        for process in descendants():
            if broker is None or process.pid != broker.pid:
                with contextlib.suppress(psutil.Error):
                    process.terminate()
        deadline = time.monotonic() + _STOP_GRACE_S
        while time.monotonic() < deadline and len(descendants()) > 1:
            time.sleep(0.05)
        end_descendants(grace_s=0.5)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.stopping = True
