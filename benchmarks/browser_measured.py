"""The browser's measurement on the database that the environment names; prints its result as a line of JSON.

`python -m benchmarks.browser_measured CURVES POINTS LOADS`. Needs Chromium.
"""

import json
import os
import shutil
import statistics
import sys
import time
from typing import Any

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    django.setup()

import numpy as np
from django.core.management import call_command
from playwright.sync_api import Page, sync_playwright

from benchmarks.web import cookie_of, web_process
from tests.jobs.factories import make_ended_job, make_spec, make_team, make_user, make_worker

_DRAWN = "count => document.querySelectorAll('#compare-curves .scatterlayer .trace').length >= count"
_RECORD_FRAMES = """() => {
  window.frames_ms = [];
  let last = performance.now();
  const next = (now) => {
    window.frames_ms.push(now - last);
    last = now;
    if (window.recording) requestAnimationFrame(next);
  };
  window.recording = true;
  requestAnimationFrame(next);
}"""
_PAN_STEPS = 60


def browser(num_curves: int, num_points: int, num_loads: int) -> dict[str, Any]:
    """Loads of the comparison of so many runs, reached by a click on a link, and one long pan."""
    owner, worker = make_user(team=make_team(), is_staff=True), make_worker()
    ids = [_ended_job(owner, worker, seed, num_points) for seed in range(num_curves)]
    session = cookie_of(owner)  # before playwright, whose event loop Django would not be asked in
    with web_process() as (_web, port), sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        context = chromium.new_context(viewport={"width": 1440, "height": 900})
        address = f"http://127.0.0.1:{port}"
        context.add_cookies([{"name": name, "value": value, "url": address} for name, value in session.items()])
        page = context.new_page()
        compare = f"{address}/compare/?jobs={','.join(map(str, ids))}"
        drawn_s = [_load_s(page, address, compare, num_curves) for _number in range(num_loads)]
        frames_ms = _pan(page)
        chromium.close()
    return {"num_curves": num_curves, "drawn_s": _described(drawn_s), "frame_ms": _described(frames_ms)}


def _ended_job(owner: Any, worker: Any, seed: int, num_points: int) -> int:
    noise = np.random.default_rng(seed).normal(0, 0.05, num_points)
    losses = 3 * np.exp(-np.arange(num_points) / (0.3 * num_points)) + noise
    return make_ended_job(owner, spec=make_spec(seed=seed), worker=worker, losses=losses.tolist()).pk


def _load_s(page: Page, address: str, compare: str, num_curves: int) -> float:
    page.goto(address)
    page.evaluate(
        "href => { const link = document.createElement('a'); link.href = href; link.id = 'go';"
        " link.textContent = 'go'; document.getElementById('main').prepend(link); }",
        compare,
    )
    began_s = time.perf_counter()
    page.click("#go")
    page.wait_for_function(_DRAWN, arg=num_curves, polling="raf", timeout=60_000)
    return time.perf_counter() - began_s


def _pan(page: Page) -> list[float]:
    """Frames while the mouse drags the plot to and fro."""
    page.evaluate("Plotly.relayout(document.getElementById('compare-curves'), {dragmode: 'pan'})")
    box = page.locator("#compare-curves .nsewdrag").first.bounding_box()
    assert box is not None
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.move(*middle)
    page.mouse.down()
    page.evaluate(_RECORD_FRAMES)
    for step in range(_PAN_STEPS):
        page.mouse.move(middle[0] + 3 * (step if step < _PAN_STEPS / 2 else _PAN_STEPS - step), middle[1])
    frames_ms: list[float] = page.evaluate("() => { window.recording = false; return window.frames_ms; }")
    page.mouse.up()
    return frames_ms[1:]


def _described(values: list[float]) -> dict[str, Any]:
    return {
        "median": statistics.median(values),
        "p95": statistics.quantiles(values, n=20)[18],
        "raw": [round(value, 3) for value in values],
    }


if __name__ == "__main__":
    call_command("migrate", verbosity=0)
    call_command("collectstatic", verbosity=0, interactive=False)
    print(json.dumps(browser(*map(int, sys.argv[1:]))))
