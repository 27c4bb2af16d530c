"""The processes that chaos happens to: a broker and two worker hosts, each started again when it ends."""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from webapp.embedded_redis import find_server
from webapp.launcher import Launcher, Service

HOSTS = ("chaos-a", "chaos-b")


class Installation:
    """A broker and the workers of two hosts that share a database and a folder."""

    def __init__(self, var: Path, redis_socket: Path) -> None:
        self.launcher = Launcher([_broker(redis_socket), *(_worker(name, var) for name in HOSTS)])
        self._watcher = threading.Thread(target=self.launcher.watch, daemon=True)

    def start(self) -> None:
        """Start everything and keep it running."""
        self.launcher.start()
        self._watcher.start()

    def stop(self) -> None:
        """End every process that is left."""
        self.launcher.stopping = True
        self._watcher.join()
        self.launcher.stop()

    @property
    def broker(self) -> psutil.Process | None:
        """The redis-server that runs now."""
        return next(iter(running("redis-server")), None)

    @property
    def workers(self) -> list[psutil.Process]:
        """The Celery workers that run now."""
        return running("celery")

    @property
    def supervisors(self) -> list[psutil.Process]:
        """The supervisors that run now."""
        return running("supervisor")

    @property
    def engines(self) -> list[psutil.Process]:
        """The engines that run now."""
        return [process for process in running("tests.stand_in_engine") if "run" in process.cmdline()]


def running(word: str) -> list[psutil.Process]:
    """The processes below this one whose command line holds `word`."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if word in " ".join(process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return sorted(found, key=lambda process: process.pid)


def wait_until(probe: Callable[[], bool], timeout_s: float) -> bool:
    """Whether the probe said yes in time."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if probe():
            return True
        time.sleep(0.1)
    return False


def _broker(socket: Path) -> Service:
    command = [find_server(), "--port", "0", "--unixsocket", str(socket), "--dir", str(socket.parent)]
    return Service("broker", [*command, "--save", "", "--appendonly", "no"], Path(os.devnull))


def _worker(name: str, var: Path) -> Service:
    log = var / f"{name}.log"
    return Service(f"worker {name}", [sys.executable, "manage.py", "worker"], log, {"PITWALL_HOST_NAME": name})
