"""The viewers' measurement on the database that the environment names; prints its result as a line of JSON.

`python -m benchmarks.viewers_measured VIEWERS RUNS SECONDS`; `write SECONDS` is the process that plays the supervisors.
Each point's value is the time at which it was handed over to be stored, so a viewer can tell how old it is.
"""

import asyncio
import json
import os
import statistics
import sys
import time
from typing import Any

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    django.setup()

import httpx
import psutil
from django.core.management import call_command

from benchmarks.web import cookie_of, web_process
from jobs.models import Attempt, Job, User
from jobs.services.record import record_points
from tests.jobs.factories import make_job, make_team, make_user, make_worker, points, start

FLUSH_S = 0.25  # as a supervisor's
STEPS_PER_FLUSH = 20


def viewers(num_viewers: int, num_runs: int, watched_s: int) -> dict[str, Any]:
    """What each of the viewers of the first run got, and how old it was."""
    owner = make_user(team=make_team())
    watched, *_others = [_running_job(owner, number) for number in range(num_runs)]
    with web_process() as (web, port):
        began_cpu_s, began_s = _cpu_s(web), time.perf_counter()
        heard = asyncio.run(_watch(port, cookie_of(owner), watched.pk, num_viewers, watched_s))
        share = (_cpu_s(web) - began_cpu_s) / (time.perf_counter() - began_s)
        rss_bytes = web.memory_info().rss
    behind_s = [seconds for one in heard for seconds in one]
    num_points = Attempt.objects.get(job=watched).num_points // STEPS_PER_FLUSH
    cuts = statistics.quantiles(behind_s, n=100)
    return {
        "num_viewers": num_viewers,
        "num_runs": num_runs,
        "num_expected": num_points * num_viewers,
        "num_missing": num_points * num_viewers - len(behind_s),
        "p50_behind_s": cuts[49],
        "p95_behind_s": cuts[94],
        "most_behind_s": max(behind_s),
        "web_cpu_share": share,
        "web_rss_bytes": rss_bytes,
    }


def write(seconds: int) -> None:
    """Flushes of all runs, as often as their supervisors would."""
    attempts = list(Attempt.objects.order_by("pk"))
    for flush in range(round(seconds / FLUSH_S)):
        due_s = time.monotonic() + FLUSH_S
        steps = range(flush * STEPS_PER_FLUSH, (flush + 1) * STEPS_PER_FLUSH)
        for attempt in attempts:
            record_points(attempt, flush, [points(list(steps), train_loss=[time.time()] * STEPS_PER_FLUSH)])
        time.sleep(max(0.0, due_s - time.monotonic()))


def _running_job(owner: User, number: int) -> Job:
    job = make_job(owner)
    start(job, make_worker(f"host-{number}"))
    return job


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


async def _watch(
    port: int, cookies: dict[str, str], job_id: int, num_viewers: int, watched_s: int
) -> list[list[float]]:
    """All viewers open their stream; once each was greeted the runs write. Seconds behind, by viewer and flush."""
    greeted = asyncio.Semaphore(0)
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(timeout=None, limits=limits, cookies=cookies) as client:  # noqa: S113 - a stream
        address = f"http://127.0.0.1:{port}/live/?topics=job:{job_id}"
        heard: list[list[float]] = [[] for _number in range(num_viewers)]
        streams = [asyncio.create_task(_listen(client, address, greeted, one)) for one in heard]
        for _number in range(num_viewers):
            await greeted.acquire()
        writer = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "benchmarks.viewers_measured", "write", str(watched_s)
        )
        await writer.wait()
        await asyncio.sleep(2)  # what was stored last arrives
        for stream in streams:
            stream.cancel()
        await asyncio.gather(*streams, return_exceptions=True)
    return heard


async def _listen(client: httpx.AsyncClient, address: str, greeted: asyncio.Semaphore, behind_s: list[float]) -> None:
    event = ""
    async with client.stream("GET", address) as response:
        async for line in response.aiter_lines():
            if line.startswith("event: "):
                event = line.removeprefix("event: ")
            if line.startswith("data: ") and event == "hello":
                greeted.release()
            if line.startswith("data: ") and event == "points":
                now_s = time.time()
                values = json.loads(line.removeprefix("data: "))["series"]["train_loss"]["y"]
                behind_s += [now_s - stored_s for stored_s in values[::STEPS_PER_FLUSH]]


if __name__ == "__main__":
    if sys.argv[1] == write.__name__:
        write(int(sys.argv[2]))
    else:
        call_command("migrate", verbosity=0)
        print(json.dumps(viewers(*map(int, sys.argv[1:]))))
