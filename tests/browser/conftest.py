"""A real web server over a database of its own, and a real browser that tolerates no error."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from tests.prepared import copy_migrated

expect.set_options(timeout=20_000)  # a busy machine is slow, not wrong

ROOT = Path(__file__).resolve().parents[2]
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


class Site:
    """The running server and the process that plays the workers' part."""

    def __init__(self, address: str, cast: subprocess.Popen[str], jobs: dict[str, int]) -> None:
        self.address = address
        self.jobs = jobs
        self._cast = cast

    def tell(self, line: str) -> Any:
        """Let the cast do something, and return its answer."""
        assert self._cast.stdin
        assert self._cast.stdout
        self._cast.stdin.write(line + "\n")
        self._cast.stdin.flush()
        return json.loads(self._cast.stdout.readline())


def chromium_path() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = chromium_path()
    if path is None:
        reason = "Chromium is not installed"
        if os.environ.get("PITWALL_TEST_REQUIRE") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=_FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Site]:
    var = tmp_path_factory.mktemp("var")
    env = os.environ | {"PITWALL_VAR": str(var), "PYTHONPATH": str(ROOT), "DJANGO_SETTINGS_MODULE": "webapp.settings"}
    copy_migrated(var)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    cast: subprocess.Popen[str] = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "tests.browser.cast"], cwd=ROOT, env=env, **pipes
    )
    assert cast.stdout
    jobs = json.loads(cast.stdout.readline())
    port = _free_port()
    serve = ["-m", "uvicorn", "webapp.asgi:application", "--port", str(port), "--timeout-graceful-shutdown", "2"]
    with (var / "web.log").open("w") as log:
        web = subprocess.Popen([sys.executable, "-W", "ignore", *serve], cwd=ROOT, env=env, stdout=log, stderr=log)
        _wait_for(f"http://127.0.0.1:{port}/livez")
        yield Site(f"http://127.0.0.1:{port}", cast, jobs)
        web.terminate()
        web.wait(timeout=10)
    cast.communicate()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            urllib.request.urlopen(url, timeout=1)  # noqa: S310 our own address
            return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"{url} did not answer")


@pytest.fixture
def sign_in(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens a page of any site as somebody; fails the test on any error in the console, CSP violations among them."""
    errors: list[str] = []
    contexts = []

    def note(message: ConsoleMessage) -> None:
        # A refused form answers 422, and the browser notes every answer of that kind.
        if message.type == "error" and "status of 422" not in message.text:
            errors.append(message.text)

    def open_as(address: str, name: str, password: str, path: str = "/", **options: Any) -> Page:
        context = browser.new_context(base_url=address, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", note)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"/sign-in/?next={path}")
        page.fill("#id_username", name)
        page.fill("#id_password", password)
        page.click("button[type=submit]")
        page.wait_for_url(f"{address}{path}")
        return page

    yield open_as
    for context in contexts:
        context.close()
    assert errors == []


@pytest.fixture
def open_page(site: Site, sign_in: Callable[..., Page]) -> Callable[..., Page]:
    """Opens a page of the seeded site as one of its people."""

    def open_as(name: str = "mara", path: str = "/", **options: Any) -> Page:
        return sign_in(site.address, name, "open sesame", path, **options)

    return open_as
