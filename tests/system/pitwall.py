"""The whole program as a person runs it: real processes, a real broker, a real database, in a folder of its own."""

import contextlib
import logging
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg

from tests.prepared import PROJECT_ROOT, copy_with_an_admin
from workers.engine.spare import WARM_NAME

logging.getLogger("httpx").setLevel(logging.WARNING)  # a line per request drowns what failed

# Heartbeat 1 s, lease 6 s, relay 1 s.
TIME_SCALE = "0.1"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(probe: Callable[[], Any], timeout_s: float = 60, what: str = "") -> Any:
    """The first true answer of `probe`; fails with `what` when none came in time."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if answer := probe():
            return answer
        time.sleep(0.05)
    raise AssertionError(f"waited {timeout_s} s in vain for {what or probe}")


class Pitwall:
    """One running installation and a client for its API."""

    def __init__(self, var: Path, **environment: str) -> None:
        self.var = var
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PITWALL_")}
        own = {"PITWALL_VAR": str(var), "PITWALL_TIME_SCALE": TIME_SCALE, "PITWALL_MEASURE_CEILINGS": "false"}
        # Two cores have enough to do with what is tested: no spares.
        own |= {"PITWALL_NODE_ADDRESS": "127.0.0.1", "PITWALL_SPARES": "0"}
        self.environment = inherited | own | environment
        self.process: subprocess.Popen[str] | None = None
        self.client = httpx.Client(base_url=f"{self.url}/api/v1", timeout=30)

    def manage(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run one management command against this installation."""
        command = [sys.executable, "manage.py", *arguments]
        return subprocess.run(
            command, env=self.environment, cwd=PROJECT_ROOT, capture_output=True, text=True, timeout=120, check=check
        )

    def start(self) -> None:
        """Start `manage.py run` and wait until a worker has registered."""
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "run", "--port", str(self.port)],
            env=self.environment,
            cwd=PROJECT_ROOT,
            stdout=(self.var.parent / f"{self.var.name}-run.txt").open("a"),
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            wait_until(self.is_well, 180, "a healthy installation")
        except BaseException:
            self.stop()
            raise
        if "Authorization" not in self.client.headers:
            self.authorize(self.manage("create_token", "admin").stdout.strip())

    def authorize(self, token: str) -> None:
        """Let the client use the API with this token."""
        self.client.headers["Authorization"] = f"Bearer {token}"

    def is_well(self) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(f"{self.url}/healthz", timeout=5).status_code == 200
        return False

    def stop(self) -> float:
        """End it as Ctrl-C does; returns the seconds that it took. Fails where a process is left."""
        if self.process is None:
            return 0.0
        tree = self.processes()
        began = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=30)
        took_s = time.monotonic() - began
        self.process = None
        left = [process for process in tree if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]
        assert not left, f"left behind: {left}"
        return took_s

    def processes(self) -> list[psutil.Process]:
        """Every process of the installation, supervisors and engines in sessions of their own too."""
        if self.process is None:
            return []
        root = psutil.Process(self.process.pid)
        return [root, *root.children(recursive=True)]

    def processes_running(self, word: str) -> list[psutil.Process]:
        """The processes whose command line holds `word`."""
        found = []
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                if word in " ".join(process.cmdline()):
                    found.append(process)
        return found

    def warm_spares(self) -> list[psutil.Process]:
        """The engines that wait for a job."""
        found = []
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                if process.name() == WARM_NAME and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def submit(self, **spec: Any) -> int:
        """Queue one job; its id."""
        response = self.client.post("/jobs", json=spec)
        assert response.status_code == 201, response.text
        return int(response.json()["id"])

    def job(self, job_id: int) -> dict[str, Any]:
        """A job as the API shows it."""
        response = self.client.get(f"/jobs/{job_id}")
        assert response.status_code == 200, response.text
        return dict(response.json())

    def wait_for(self, job_id: int, *states: str, timeout_s: float = 90) -> dict[str, Any]:
        """The job once it is in one of the states."""

        def in_state() -> dict[str, Any] | None:
            job = self.job(job_id)
            if job["state"] in states:
                return job
            assert job["outcome"] is None, f"job {job_id} ended as {job['outcome']}: {job['attempts'][-1]['error']}"
            return None

        return dict(wait_until(in_state, timeout_s, f"job {job_id} in {states}"))

    def sql(self, statement: str, *values: Any) -> list[Any]:
        """Run one statement on the installation's database, whichever it is; the rows that it returns."""
        url = self.environment.get("PITWALL_DATABASE_URL")
        if url:
            with psycopg.connect(url) as connection:
                cursor = connection.execute(statement.replace("?", "%s"), values)
                return cursor.fetchall() if cursor.description else []
        with contextlib.closing(sqlite3.connect(self.var / "db.sqlite3", timeout=30)) as database, database:
            return database.execute(statement, values).fetchall()

    def curve(self, job_id: int, series: str = "train_loss") -> dict[str, Any]:
        """A job's curve in full."""
        return dict(self.client.get(f"/jobs/{job_id}/curves/{series}").raise_for_status().json())


@contextlib.contextmanager
def running(var: Path, *, from_nothing: bool = False, **environment: str) -> Iterator[Pitwall]:
    """An installation for the length of a `with` block.

    It starts as one that was started before, without the first jobs; a server's database is brought up to date here.
    """
    pitwall = Pitwall(var, **environment)
    if not from_nothing and "PITWALL_DATABASE_URL" not in environment:
        pitwall.authorize(copy_with_an_admin(var))
    pitwall.start()
    try:
        yield pitwall
    finally:
        if pitwall.process is not None:
            pitwall.stop()
