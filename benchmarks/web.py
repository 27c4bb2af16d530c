"""A web process of our own on the database that the environment names, and somebody who is signed in to it."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import psutil
from django.conf import settings
from django.test import Client

from jobs.models import User


@contextmanager
def web_process() -> Iterator[tuple[psutil.Process, int]]:
    """The process and its port; it is stopped at the end."""
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "webapp.asgi:application", "--port", str(port), "--log-level", "error"]
    with subprocess.Popen([*command, "--timeout-graceful-shutdown", "2"]) as server:
        try:
            while not _answers(port):
                time.sleep(0.1)
            yield psutil.Process(server.pid), port
        finally:
            server.terminate()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/livez").status_code == 200
    except httpx.HTTPError:
        return False


def cookie_of(user: User) -> dict[str, str]:
    """A session of the user's."""
    client = Client()
    client.force_login(user)
    return {settings.SESSION_COOKIE_NAME: client.cookies[settings.SESSION_COOKIE_NAME].value}
