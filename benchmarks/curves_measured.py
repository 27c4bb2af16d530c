"""The curve store's measurement on the database that the environment names; prints its result as a line of JSON.

`python -m benchmarks.curves_measured ingest REPEATS`, `bytes`, `reads REQUESTS`.
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from typing import Any

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    django.setup()

import httpx
import numpy as np
from django.core.management import call_command
from django.db import connection

from benchmarks.curve_data import events, losses
from benchmarks.web import cookie_of, web_process
from jobs.contract.events import Points
from jobs.contract.states import Outcome
from jobs.models import Attempt, Job, User
from jobs.services.compaction import compact
from jobs.services.finish import finish_attempt
from jobs.services.record import record_points
from tests.jobs.factories import make_job, make_spec, make_team, make_user, make_worker, start

SERIES = ("train_loss", "eval_loss", "learning_rate")
STEPS_PER_FLUSH = 10_000  # of the one long run; what a supervisor stores at once goes up to 65,536 points


def ingest(num_repeats: int) -> dict[str, Any]:
    """Points per second, parsed events to committed rows: 100 runs x 3 series x 1,000 points; one run x 100,000."""
    owner = make_user(team=make_team())
    many, one = [], []
    for repeat in range(num_repeats + 1):
        attempts = list(_attempts(owner, 100))
        flushes = [events(1000, 3 * number, 250, SERIES) for number in range(len(attempts))]
        began_s = time.perf_counter()
        for attempt, flush in zip(attempts, flushes, strict=True):
            record_points(attempt, 0, flush)
        many.append(300_000 / (time.perf_counter() - began_s))
        [attempt] = _attempts(owner, 1)
        told = events(100_000, repeat, 250)
        began_s = time.perf_counter()
        _tell(attempt, told, STEPS_PER_FLUSH)
        one.append(100_000 / (time.perf_counter() - began_s))
    return {
        "100 runs x 3 series x 1,000 points": _rates(many[1:]),  # the first time warms up
        "one run x 100,000 points": _rates(one[1:]),
    }


def _rates(raw: list[float]) -> dict[str, Any]:
    return {"median_per_s": statistics.median(raw), "raw_per_s": raw}


def _tell(attempt: Attempt, told: list[Points], steps_per_flush: int) -> None:
    per_flush = max(1, steps_per_flush // len(told[0].steps))
    for sequence, begin in enumerate(range(0, len(told), per_flush)):
        record_points(attempt, sequence, told[begin : begin + per_flush])


def _attempts(owner: User, count: int) -> Iterator[Attempt]:
    worker = make_worker()
    for _number in range(count):
        attempt = start(make_job(owner, spec=make_spec(num_steps=1_000_000)), worker)
        yield attempt
        _free_device(attempt)


def _free_device(attempt: Attempt) -> None:
    """Its device is free for the next one, and its points are still accepted."""
    attempt.devices.update(attempt=None)


def measure_bytes() -> dict[str, Any]:
    """What the database's file grows by for each point: while a run lives, and once it is compacted."""
    owner = make_user(team=make_team())
    return {
        "4,096 points, 15 a flush": _bytes_per_point(owner, 20, 4096, 15),
        "100,000 points, 250 a flush": _bytes_per_point(owner, 2, 100_000, 250),
        "100,000 points of values that are no float32": _bytes_per_point(owner, 2, 100_000, 250, as_float32=False),
    }


def _bytes_per_point(
    owner: User, num_runs: int, num_points: int, per_flush: int, as_float32: bool = True
) -> dict[str, Any]:
    attempts = list(_attempts(owner, num_runs))
    empty = _used_bytes()
    for seed, attempt in enumerate(attempts):
        told = events(num_points, seed, per_flush)
        if not as_float32:
            values = losses(num_points, seed, as_float32=False)
            told = [event.model_copy(update={"series": {"train_loss": _cut(values, event)}}) for event in told]
        _tell(attempt, told, per_flush)
    live = _used_bytes() - empty
    for attempt in attempts:
        finish_attempt(attempt, Outcome.SUCCEEDED)
        compact(Attempt.objects.get(pk=attempt.pk))
    compacted = _used_bytes() - empty
    total = num_runs * num_points
    return {"live": live / total, "compacted": compacted / total, "num_points": num_points}


def _cut(values: np.ndarray, event: Points) -> list[float]:
    return values[event.steps[0] - 1 : event.steps[-1]].tolist()  # type: ignore[no-any-return]


def _used_bytes() -> int:
    """Pages of SQLite's file that hold something: tables and indexes."""
    with connection.cursor() as cursor:
        numbers = [cursor.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count")]
        (size,) = cursor.execute("PRAGMA page_size").fetchone()
    return int((numbers[0] - numbers[1]) * size)


def reads(num_requests: int) -> dict[str, Any]:
    """Milliseconds of requests over HTTP, one after the other, of compacted runs."""
    owner = make_user(team=make_team())
    [long] = _ended(owner, 1, 100_000)
    [longest] = _ended(owner, 1, 1_000_000)
    ten = [longs.pk for longs in _ended(owner, 10, 100_000)]
    many = [longs.pk for longs in _ended(owner, 200, 10_000)]
    curve = "/api/v1/jobs/{}/curves/train_loss"
    with web_process() as (_web, port), _client(port, owner) as client:
        found = {
            "full history, 100,000 points": _timed(client, [curve.format(long.pk)], num_requests),
            "one zoom level, 1,000,000 points": _timed(client, _zooms(curve.format(longest.pk)), num_requests),
            "comparison, 10 runs x 100,000": _timed(client, [_comparison(ten)], num_requests),
            "comparison, 200 runs x 10,000": _timed(client, [_comparison(many)], num_requests),
        }
    return {name: times for name, times in found.items() if times}


def _ended(owner: User, num_runs: int, num_points: int) -> list[Job]:
    jobs = []
    for attempt in _attempts(owner, num_runs):
        _tell(attempt, events(num_points, attempt.pk, 250), STEPS_PER_FLUSH)
        finish_attempt(attempt, Outcome.SUCCEEDED)
        compact(Attempt.objects.get(pk=attempt.pk))
        jobs.append(attempt.job)
    return jobs


def _zooms(address: str) -> list[str]:
    """The whole, and ever smaller parts of it around another step each time."""
    ranges = [(1_000_000 // 4**depth, place) for depth in range(6) for place in (0.1, 0.5, 0.8)]
    parts = [(int(place * (1_000_000 - width)) + 1, width) for width, place in ranges]
    return [f"{address}?max_points=2000&x_from={begin}&x_to={begin + width - 1}" for begin, width in parts]


def _comparison(ids: list[int]) -> str:
    return f"/api/v1/compare?jobs={','.join(map(str, ids))}&series=train_loss"


def _client(port: int, user: User) -> httpx.Client:
    return httpx.Client(base_url=f"http://127.0.0.1:{port}", cookies=cookie_of(user), timeout=60)


def _timed(client: httpx.Client, addresses: list[str], num_requests: int) -> dict[str, Any]:
    """From the request to the last byte of the answer; nothing where the page refuses so many runs."""
    if client.get(addresses[0]).status_code == 422:
        return {}
    times_ms, num_bytes = [], 0
    for number in range(num_requests):
        began_s = time.perf_counter()
        answer = client.get(addresses[number % len(addresses)])
        times_ms.append(1000 * (time.perf_counter() - began_s))
        answer.raise_for_status()
        num_bytes = max(num_bytes, len(answer.content))
    cuts = statistics.quantiles(times_ms, n=20)
    return {"p50_ms": cuts[9], "p95_ms": cuts[18], "num_bytes": num_bytes, "raw_ms": times_ms}


if __name__ == "__main__":
    call_command("migrate", verbosity=0)
    measured = {"ingest": ingest, "bytes": measure_bytes, "reads": reads}[sys.argv[1]]
    print(json.dumps(measured(*map(int, sys.argv[2:]))))
