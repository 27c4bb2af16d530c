"""One measurement on the database that the environment names; prints its result as a line of JSON.

`python -m benchmarks.load_measured claims 10000 500`, `queue_page 10000 100`, `heartbeats 50 20`, `empty_jobs 1000`;
`supervise ATTEMPT SECONDS` is what `heartbeats` starts 50 times.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    django.setup()

import redis
from celery import Celery
from django.conf import settings
from django.core.management import call_command
from django.db import OperationalError
from django.test import Client
from django.utils import timezone

from jobs.contract.states import Outcome
from jobs.models import Attempt, Job, Queue, Team, User, Worker
from jobs.services.claim import claim_next
from jobs.services.finish import finish_attempt
from jobs.services.record import heartbeat, record_points
from tests.jobs.factories import make_queue, make_spec, make_team, make_user, make_worker, points, start
from webapp.broker import celery_url
from webapp.embedded_redis import find_server

BEATS_PER_S = 1  # ten times as often as a real supervisor


def claims(num_waiting: int, num_claims: int) -> dict[str, Any]:
    """Milliseconds of a claim, and of nothing else, while so many jobs wait."""
    worker = make_worker(num_gpus=1)
    _queue_jobs(num_waiting, device="cuda")
    times_ms = []
    for _number in range(num_claims):
        began_s = time.perf_counter()
        attempt = claim_next(worker.pk)
        times_ms.append(1000 * (time.perf_counter() - began_s))
        assert attempt is not None
        finish_attempt(attempt, Outcome.SUCCEEDED)
    return {"num_waiting": num_waiting} | _percentiles(times_ms)


def queue_page(num_waiting: int, num_pages: int) -> dict[str, Any]:
    """Milliseconds of a queue's page, from the address to the last byte, while so many jobs wait and one runs."""
    worker = make_worker(num_gpus=1)
    _queue_jobs(num_waiting, device="cuda")
    assert claim_next(worker.pk) is not None
    call_command("collectstatic", verbosity=0, interactive=False)
    client = Client(headers={"Host": "localhost"})
    client.force_login(make_user("staff", is_staff=True))
    times_ms = []
    for _number in range(num_pages):
        began_s = time.perf_counter()
        response = client.get("/fleet/queues/default/")
        times_ms.append(1000 * (time.perf_counter() - began_s))
        assert response.status_code == 200
    return {"num_waiting": num_waiting} | _percentiles(times_ms)


def heartbeats(num_supervisors: int, seconds: int) -> dict[str, Any]:
    """Milliseconds of a supervisor's writes while so many write, and how often one found the database locked."""
    owner = make_user(team=make_team())
    attempts = [start(job, make_worker(f"host-{job.pk}")) for job in _queue_jobs(num_supervisors, owner, device="cpu")]
    command = [sys.executable, "-m", "benchmarks.load_measured", "supervise"]
    children = [
        subprocess.Popen([*command, str(attempt.pk), str(seconds)], stdout=subprocess.PIPE) for attempt in attempts
    ]
    told = [json.loads(child.communicate()[0].splitlines()[-1]) for child in children]
    times_ms = [time_ms for each in told for time_ms in each["times_ms"]]
    locked = sum(each["num_locked"] for each in told)
    return {"num_supervisors": num_supervisors, "num_writes": len(times_ms), "num_locked": locked} | _percentiles(
        times_ms
    )


def supervise(attempt_id: int, seconds: int) -> dict[str, Any]:
    """Heartbeats and points of one attempt, as its supervisor writes them but more often."""
    attempt, times_ms, num_locked = Attempt.objects.get(pk=attempt_id), [], 0
    writes: list[Callable[[int], None]] = [
        lambda _number: heartbeat(attempt),
        lambda number: record_points(attempt, number, [points([number], train_loss=[1.0])]),
    ]
    for number in range(seconds * BEATS_PER_S):
        for write in writes:
            began_s = time.perf_counter()
            try:
                write(number)
            except OperationalError:
                num_locked += 1
            times_ms.append(1000 * (time.perf_counter() - began_s))
        time.sleep(1 / BEATS_PER_S)
    return {"times_ms": times_ms, "num_locked": num_locked}


def empty_jobs(num_jobs: int) -> dict[str, Any]:
    """Jobs per second through one worker with eight devices, and plain Celery tasks per second beside it."""
    os.environ["PITWALL_STAND_IN_GPUS"] = "8"
    folder = Path(settings.REDIS_URL.removeprefix("unix://")).parent
    broker = [
        find_server(),
        "--port",
        "0",
        "--unixsocket",
        str(folder / "redis.sock"),
        "--save",
        "",
        "--dir",
        str(folder),
    ]
    with subprocess.Popen(broker, stdout=subprocess.DEVNULL) as server:
        try:
            return {
                "num_jobs": num_jobs,
                "jobs_per_s": num_jobs / _time_jobs_s(num_jobs),
                "celery_tasks_per_s": num_jobs / _time_tasks_s(num_jobs),
            }
        finally:
            server.terminate()


def _time_jobs_s(num_jobs: int) -> float:
    make_queue()
    with _worker([sys.executable, "manage.py", "worker"]) as worker:
        _wait_until(Worker.objects.exists)
        began_s = time.perf_counter()
        _queue_jobs(num_jobs, device="cuda", num_steps=1)
        _wait_until(lambda: not Job.objects.filter(outcome=None).exists())
        took_s = time.perf_counter() - began_s
        worker.terminate()
    assert Job.objects.filter(outcome="succeeded").count() == num_jobs
    return took_s


def _time_tasks_s(num_tasks: int) -> float:
    app = Celery(broker=celery_url(settings.REDIS_URL))
    command = [sys.executable, "-m", "celery", "--app", "benchmarks.plain_celery", "worker"]
    command += ["--pool", "threads", "--concurrency", "8", "--loglevel", "ERROR"]
    with _worker(command) as worker, redis.Redis.from_url(settings.REDIS_URL) as counter:
        app.send_task("nothing")
        _wait_until(lambda: int(counter.get("done") or 0) == 1)
        began_s = time.perf_counter()
        for _number in range(num_tasks):
            app.send_task("nothing")
        _wait_until(lambda: int(counter.get("done") or 0) == num_tasks + 1)
        took_s = time.perf_counter() - began_s
        worker.terminate()
    return took_s


def _worker(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _wait_until(probe: Callable[[], bool]) -> None:
    while not probe():
        time.sleep(0.02)


def _queue_jobs(number: int, owner: User | None = None, **spec: object) -> list[Job]:
    """So many jobs, written at once: what submitting costs is not the question here."""
    owner = owner or make_user(team=make_team())
    team, queue = Team.objects.get(members=owner), Queue.objects.get_or_create(name="default")[0]
    asked, now = make_spec(**spec).model_dump(mode="json"), timezone.now()
    jobs = [
        Job(owner=owner, team=team, queue=queue, spec=asked, queued_at=now, order_key=now.timestamp() + place)
        for place in range(number)
    ]
    Job.objects.bulk_create(jobs, batch_size=500)
    return list(Job.objects.order_by("pk"))


def _percentiles(times_ms: list[float]) -> dict[str, Any]:
    cuts = statistics.quantiles(times_ms, n=100)
    return {"p50_ms": cuts[49], "p95_ms": cuts[94], "p99_ms": cuts[98], "raw_ms": [round(t, 3) for t in times_ms]}


_MEASUREMENTS: dict[str, Callable[..., dict[str, Any]]] = {
    function.__name__: function for function in (claims, queue_page, heartbeats, supervise, empty_jobs)
}

if __name__ == "__main__":
    name, *numbers = sys.argv[1:]
    if name != supervise.__name__:
        call_command("migrate", verbosity=0)
    print(json.dumps(_MEASUREMENTS[name](*map(int, numbers))))
