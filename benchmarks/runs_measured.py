"""Fills the database that the environment names with so many runs, and times pages of the list.

`python -m benchmarks.runs_measured RUNS REQUESTS` prints its result as a line of JSON. A request goes through the whole
web application, from the address to the last byte of the page, without the network.
"""

import html
import json
import os
import random
import re
import statistics
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    django.setup()

from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from jobs.models import Attempt, Job, Queue, Team, User
from tests.jobs.factories import make_queue, make_spec, make_team, make_user

NUM_TEAMS = 10
AT_ONCE = 2_000
NEWEST_DAYS = 365
MODELS = {"mlp": 2.0, "convnet": 12.0, "gpt-tiny": 40.0, "gpt2": 250.0, "resnet50": 120.0}  # ms of a step, about
DEVICES = {"auto": 1.0, "cpu": 8.0, "cuda": 0.4}
OUTCOMES = ["succeeded"] * 17 + ["failed", "out_of_memory", "cancelled"]

# What is claimed: an order by a ranked figure, narrowed by what is indexed. Then what else people do, its time stated.
LISTS = {
    "newest first": ("", True),
    "by step time": ("sort=steady_step_time_ms", True),
    "by step time, slowest first": ("sort=-steady_step_time_ms", True),
    "by evaluation loss, one team": ("sort=final_eval_loss&q=team:team-3", True),
    "by step time, the slowest model": ("sort=steady_step_time_ms&q=model:gpt2", True),
    "by throughput, one device": ("sort=-samples_per_s&q=device:cpu", True),
    "by step time, succeeded": ("sort=steady_step_time_ms&q=outcome:succeeded", True),
    "by step time, out of memory": ("sort=steady_step_time_ms&q=outcome:out_of_memory", True),
    "by step time, of the last week": ("sort=steady_step_time_ms&q=age%3C7d", True),
    "by step time, of the last half year": ("sort=steady_step_time_ms&q=age%3C180d", True),
    "newest first, one model": ("q=model:gpt2", True),
    "by step time, one model and precision": ("sort=steady_step_time_ms&q=model:mlp+precision:bf16-mixed", False),
    "newest first, one seed (of ten)": ("q=seed:7", False),
    "by step time, one learning rate (of five)": ("sort=steady_step_time_ms&q=learning_rate:0.003", False),
    "step time below 1 ms": ("q=step_time_ms%3C1", False),
    "a word in the name that few have": ("q=needle", False),
    "by name": ("sort=name", False),
}


def main(num_runs: int, num_requests: int) -> dict[str, Any]:
    """Milliseconds of each list, for a member of all teams."""
    member, teams = _people()
    began_s = time.perf_counter()
    _fill(num_runs, member, teams)
    filled_s = time.perf_counter() - began_s
    client = Client(headers={"Host": "localhost"})
    client.force_login(member)
    lists = {name: _timed(client, query, num_requests, claimed) for name, (query, claimed) in LISTS.items()}
    return {"num_runs": num_runs, "filled_s": round(filled_s, 1), "lists": lists}


def _people() -> tuple[User, list[Team]]:
    teams = [make_team(f"team-{number}") for number in range(NUM_TEAMS)]
    member = make_user("member", team=teams[0])
    for team in teams[1:]:
        team.members.add(member)
    return member, teams


def _fill(num_runs: int, owner: User, teams: list[Team]) -> None:
    """Random runs from a fixed seed, the oldest first."""
    rows, queue, done = random.Random(7), make_queue(), 0
    specs = _specs()
    moments = iter(sorted(rows.random() for _ in range(num_runs)))
    while piece := list(islice(moments, AT_ONCE)):
        jobs = [_job(rows, specs, owner, rows.choice(teams), queue, moment, num_runs) for moment in piece]
        Job.objects.bulk_create(jobs, batch_size=200)
        _date_and_attach(jobs, piece)
        done += len(jobs)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _specs() -> list[dict[str, Any]]:
    return [
        make_spec(
            model=model, dataset="digits", device=device, precision=precision, learning_rate=rate, seed=seed
        ).model_dump(mode="json")
        for model in MODELS
        for device in DEVICES
        for precision in ("fp32", "bf16-mixed")
        for rate, seed in zip((0.1, 0.03, 0.01, 0.003, 0.001) * 2, range(10), strict=True)
    ]


def _job(
    rows: random.Random, specs: list[Any], owner: User, team: Team, queue: Queue, moment: float, num_runs: int
) -> Job:
    spec, outcome = rows.choice(specs), rows.choice(OUTCOMES)
    step_time_ms = MODELS[spec["model"]] * DEVICES[spec["device"]] * rows.lognormvariate(0, 0.3)
    measured = outcome in ("succeeded", "cancelled")
    return Job(
        owner=owner,
        team=team,
        queue=queue,
        name="needle" if rows.random() < 20 / num_runs else f"run {rows.randrange(1000)}",
        spec=spec,
        state=outcome,
        outcome=outcome,
        fence=1,
        queued_at=_date(moment),
        ended_at=_date(moment),
        **(_figures(rows, step_time_ms) if measured else {}),
    )


def _figures(rows: random.Random, step_time_ms: float) -> dict[str, Any]:
    return {
        "steady_step_time_ms": step_time_ms,
        "samples_per_s": 32_000 / step_time_ms,
        "first_step_s": rows.random() * 20,
        "train_s": rows.random() * 3000,
        "final_train_loss": rows.lognormvariate(0, 0.5),
        "final_eval_loss": rows.lognormvariate(0, 0.5),
        "eval_accuracy": rows.random(),
        "peak_rss_bytes": rows.randrange(2**28, 2**33),
        "peak_allocated_bytes": rows.randrange(2**28, 2**36) if rows.random() < 0.5 else None,
    }


_NEXT = re.compile(r'id="next-page" href="([^"]+)"')
_NOW = timezone.now() if __name__ == "__main__" else datetime(2026, 1, 1, tzinfo=UTC)


def _date(moment: float) -> datetime:
    return _NOW - timedelta(days=NEWEST_DAYS) * (1 - moment)


def _date_and_attach(jobs: list[Job], moments: list[float]) -> None:
    """The time of a job's making, which Django sets itself, and its last attempt."""
    attempts = [
        Attempt(
            job=job,
            number=1,
            fence=1,
            outcome=job.outcome,
            claimed_at=job.queued_at,
            heartbeat_at=job.queued_at,
            lease_expires_at=job.queued_at,
            ended_at=job.ended_at,
            device_name="Fast CPU",
            num_points=100,
        )
        for job in jobs
    ]
    Attempt.objects.bulk_create(attempts, batch_size=500)
    rows = [
        (moment, attempt.pk, job.pk) for moment, attempt, job in zip(map(_date, moments), attempts, jobs, strict=True)
    ]
    with connection.cursor() as cursor:
        cursor.executemany(
            "UPDATE jobs_job SET created_at = %s, last_attempt_id = %s WHERE id = %s", list(_plain(rows))
        )


def _plain(rows: list[tuple[datetime, int, int]]) -> Iterator[tuple[Any, int, int]]:
    for moment, attempt_id, job_id in rows:
        yield connection.ops.adapt_datetimefield_value(moment), attempt_id, job_id


def _timed(client: Client, query: str, num_requests: int, is_claimed: bool) -> dict[str, Any]:
    """The first page again and again, and the pages behind it in turn: a page is no dearer for lying deep."""
    times_ms, address = [], f"/?{query}"
    for number in range(num_requests if is_claimed else max(5, num_requests // 10)):
        began_s = time.perf_counter()
        response = client.get(address)
        times_ms.append(1000 * (time.perf_counter() - began_s))
        assert response.status_code == 200, response.content[:500]
        following = _NEXT.search(response.content.decode())
        address = f"/{html.unescape(following[1])}" if following and number % 5 else f"/?{query}"
    cuts = statistics.quantiles(times_ms, n=20)
    return {"p50_ms": cuts[9], "p95_ms": cuts[18], "is_claimed": is_claimed, "raw_ms": [round(t, 2) for t in times_ms]}


if __name__ == "__main__":
    call_command("migrate", verbosity=0)
    call_command("collectstatic", verbosity=0, interactive=False)
    print(json.dumps(main(*map(int, sys.argv[1:]))))
