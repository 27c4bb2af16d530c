"""The faults that must not lose or double a job, each done for real: real processes, a real Redis, real kills.

One running installation with a stand-in for the engine takes them all, so they also show that it survives them. What
is about a race of two writers stands in tests/jobs/test_races.py, faults at random in tests/chaos.
"""

import json
import math
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psutil
import pytest
import redis
from celery import Celery

from tests.stand_in_engine import Part, loss_at
from tests.system.pitwall import Pitwall, running, wait_until
from tests.system.postgres import PostgresServer
from webapp.broker import celery_url, recorded_url_path

CPU: dict[str, Any] = {"model": "mlp", "dataset": "digits", "device": "cpu"}
GPU = CPU | {"device": "cuda"}
TWO_GPUS = GPU | {"num_devices": 2, "parallelism": "ddp"}
SHORT = {"num_steps": 10}
ENDLESS = {"num_steps": 1_000_000}

# At the harness's scale of a tenth.
LEASE_S = 6.0
RELAY_S = 1.0
RESERVE_AFTER_S = 60.0


@dataclass
class Site:
    """The installation under test, and the database server that it may lose."""

    pitwall: Pitwall
    postgres: PostgresServer | None  # None: SQLite

    def submit(self, **spec: Any) -> int:
        return self.pitwall.submit(**spec)

    def supervisors(self) -> list[psutil.Process]:
        return self.pitwall.processes_running("workers.supervisor")

    def supervisor_of(self, job_id: int) -> psutil.Process:
        """The process that supervises the job's last attempt."""
        attempt = self.pitwall.job(job_id)["attempts"][-1]["id"]
        ((pid,),) = self.pitwall.sql("SELECT supervisor_pid FROM jobs_attempt WHERE id = ?", attempt)
        return psutil.Process(pid)

    def wait_running(self, job_id: int, num_attempts: int = 1) -> dict[str, Any]:
        """The job once its attempt of that number runs and has stored points."""
        return dict(wait_until(lambda: self._running(job_id, num_attempts), 60, f"job {job_id} to run"))

    def _running(self, job_id: int, num_attempts: int) -> dict[str, Any] | None:
        job = self.pitwall.job(job_id)
        attempts = job["attempts"]
        runs = job["state"] == "running" and len(attempts) == num_attempts and attempts[-1]["num_points"] > 0
        return job if runs else None

    def cancel(self, job_id: int) -> dict[str, Any]:
        """End the job and wait until nothing of it is left."""
        self.pitwall.client.post(f"/jobs/{job_id}/cancel").raise_for_status()
        return self.pitwall.wait_for(job_id, "cancelled")

    def leases(self) -> list[tuple[str, int]]:
        """The devices that are not free, with the attempts that hold them."""
        return self.pitwall.sql("SELECT name, attempt_id FROM jobs_device WHERE attempt_id IS NOT NULL")

    def wait_clean(self) -> None:
        """Until no device is leased and no process of an attempt is left."""
        wait_until(lambda: not self.leases(), 30, "all devices to be free")
        wait_until(lambda: not self.supervisors(), 5, "the supervisors' end")
        assert not self.pitwall.processes_running("stand_in_engine")

    def broker(self) -> redis.Redis:
        return redis.Redis.from_url(recorded_url_path(self.pitwall.var).read_text())


def start_site(folder: Any, postgres: PostgresServer | None, name: str) -> Iterator[Site]:
    environment = {"PITWALL_ENGINE_MODULE": "tests.stand_in_engine"}
    if postgres:
        environment["PITWALL_DATABASE_URL"] = postgres.create_database(name)
    with running(folder / "var", **environment) as pitwall:
        site = Site(pitwall, postgres)
        for job in pitwall.client.get("/jobs").json()["jobs"]:
            pitwall.client.post(f"/jobs/{job['id']}/cancel")
        site.wait_clean()
        yield site


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    postgres = request.getfixturevalue("postgres") if request.param == "postgresql" else None
    yield from start_site(tmp_path_factory.mktemp(request.param), postgres, "faults")


@pytest.fixture(autouse=True)
def nothing_is_left(site: Site) -> Iterator[None]:
    """Every fault ends with all devices free and no process left."""
    yield
    site.wait_clean()


def is_alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def assert_curve_is_whole(site: Site, job_id: int) -> None:
    """Each step once, in order, with the value that the engine told."""
    curve = site.pitwall.curve(job_id)
    assert curve["x"] == list(range(1, len(curve["x"]) + 1))
    assert curve["y"] == [loss_at(step) for step in curve["x"]]
    assert curve["x"]


# ---------------------------------------------------------------- wake-ups


def test_the_same_wake_up_twenty_times_is_one_attempt(site: Site) -> None:
    job_id = site.submit(**GPU, **ENDLESS)
    app = Celery(broker=celery_url(recorded_url_path(site.pitwall.var).read_text()))
    for _time in range(20):
        app.send_task("workers.wake", kwargs={"queue_name": "default"}, queue="pitwall.default")
    site.wait_running(job_id)
    wait_until(lambda: site.broker().llen("pitwall.default") == 0, what="all messages to be taken")
    time.sleep(RELAY_S)
    assert len(site.cancel(job_id)["attempts"]) == 1


@pytest.mark.parametrize("fault", ["flushed", "restarted empty"])
def test_jobs_run_soon_after_redis_lost_everything(site: Site, fault: str) -> None:
    waiting = [site.submit(**GPU, **SHORT) for _number in range(3)]
    if fault == "flushed":
        site.broker().flushall()
    else:
        (server,) = site.pitwall.processes_running("redis-server")
        server.kill()
    waiting.append(site.submit(**GPU, **SHORT))
    for job_id in waiting:
        site.pitwall.wait_for(job_id, "succeeded", timeout_s=30)


def test_a_job_whose_wake_up_was_never_sent_runs_all_the_same(site: Site) -> None:
    """As after a crash between the commit and the message: the row is there, and nothing says so."""
    spec = site.pitwall.var / "spec.json"
    spec.write_text(json.dumps(CPU | SHORT))
    site.pitwall.environment["PITWALL_REDIS_URL"] = "unix:///no/such/socket"
    try:
        job_id = json.loads(site.pitwall.manage("submit", str(spec)).stdout)["id"]
    finally:
        del site.pitwall.environment["PITWALL_REDIS_URL"]
    site.pitwall.wait_for(job_id, "succeeded", timeout_s=30)


def test_a_job_runs_all_the_same_where_no_wake_up_is_heard(site: Site) -> None:
    """As after a consumer fell silent in a reconnect, or while Redis is away for long."""
    app = Celery(broker=celery_url(recorded_url_path(site.pitwall.var).read_text()))
    assert app.control.cancel_consumer("pitwall.default", reply=True, timeout=5)
    try:
        waiting = [site.submit(**GPU, **SHORT) for _number in range(3)]
        for job_id in waiting:
            site.pitwall.wait_for(job_id, "succeeded", timeout_s=60)
    finally:
        assert app.control.add_consumer("pitwall.default", reply=True, timeout=5)


# ------------------------------------------------------ workers and supervisors


def test_a_killed_celery_worker_leaves_its_jobs_undisturbed_and_the_next_one_observes_them(site: Site) -> None:
    job_id = site.submit(**GPU, **ENDLESS)
    attempt = site.wait_running(job_id)["attempts"][-1]
    supervisor = site.supervisor_of(job_id)
    for process in site.pitwall.processes_running("celery"):
        process.kill()
    app = Celery(broker=celery_url(recorded_url_path(site.pitwall.var).read_text()))

    def observed() -> bool:
        active = (app.control.inspect(timeout=1).active() or {}).values()
        observers = [task for tasks in active for task in tasks if task["name"] == "workers.observe"]
        return [task["kwargs"]["attempt_id"] for task in observers] == [attempt["id"]]

    wait_until(observed, 60, "the attempt to be observed")
    assert is_alive(supervisor)
    assert len(site.cancel(job_id)["attempts"]) == 1
    assert_curve_is_whole(site, job_id)
    wait_until(lambda: not observed(), 10, "the observer's end")


@pytest.mark.parametrize(("max_attempts", "state"), [(2, "running"), (1, "lost")])
def test_a_killed_supervisor_takes_its_tree_along_and_the_job_goes_on_as_set(
    site: Site, max_attempts: int, state: str
) -> None:
    site.pitwall.sql("UPDATE jobs_queue SET max_attempts = ?", max_attempts)
    try:
        job_id = site.submit(**GPU, **ENDLESS, seed=Part.LEAVE_A_PROCESS)
    finally:
        site.pitwall.sql("UPDATE jobs_queue SET max_attempts = 3")
    site.wait_running(job_id)
    supervisor = site.supervisor_of(job_id)
    tree = supervisor.children(recursive=True)
    assert len(tree) == 2
    supervisor.kill()
    wait_until(lambda: not is_alive(tree[0]), 1, "the engine's end")
    wait_until(lambda: not any(map(is_alive, tree)), 10, "the end of what had left its session")
    if state == "running":
        site.wait_running(job_id, num_attempts=2)
        assert [a["outcome"] for a in site.cancel(job_id)["attempts"]] == ["lost", "cancelled"]
    else:
        assert len(site.pitwall.wait_for(job_id, "lost")["attempts"]) == 1


def test_a_supervisor_that_stood_still_past_its_lease_writes_nothing_more_and_ends_its_tree(site: Site) -> None:
    job_id = site.submit(**GPU, **ENDLESS)
    site.wait_running(job_id)
    supervisor = site.supervisor_of(job_id)
    tree = [supervisor, *supervisor.children(recursive=True)]
    supervisor.suspend()
    first, _second = site.wait_running(job_id, num_attempts=2)["attempts"]
    assert first["outcome"] == "lost"
    assert len(site.leases()) == 2, "its device is not free while it may still be on it"
    before = attempt_as_stored(site, first["id"])
    supervisor.resume()
    wait_until(lambda: not any(map(is_alive, tree)), 20, "the end of its tree")
    assert attempt_as_stored(site, first["id"]) == before
    wait_until(lambda: len(site.leases()) == 1, 10, "its device to be free")
    assert [a["outcome"] for a in site.cancel(job_id)["attempts"]] == ["lost", "cancelled"]
    assert_curve_is_whole(site, job_id)


def attempt_as_stored(site: Site, attempt_id: int) -> list[Any]:
    """The attempt's row and how many points it has."""
    chunks = "SELECT sum(num_points), max(last_step) FROM jobs_curvechunk WHERE attempt_id = ?"
    row = "SELECT outcome, heartbeat_at, last_step, num_points, num_flushes, ended_at FROM jobs_attempt WHERE id = ?"
    return [site.pitwall.sql(row, attempt_id), site.pitwall.sql(chunks, attempt_id)]


def test_a_job_goes_on_from_its_last_checkpoint_after_its_supervisor_died(site: Site) -> None:
    job_id = site.submit(**GPU, num_steps=300, checkpoint_every_steps=20)
    wait_until(lambda: site.pitwall.job(job_id)["attempts"][-1:] and last_step(site, job_id) > 60, what="checkpoints")
    site.supervisor_of(job_id).kill()
    _first, second = site.pitwall.wait_for(job_id, "succeeded")["attempts"]
    assert second["resumed_at_step"] >= 40
    assert_curve_is_whole(site, job_id)
    curve = site.pitwall.curve(job_id)
    assert (len(curve["x"]), curve["seams"]) == (300, [second["resumed_at_step"]])


def last_step(site: Site, job_id: int) -> int:
    return int(site.pitwall.job(job_id)["attempts"][-1]["last_step"])


# ------------------------------------------------------------- the database


@contextmanager
def database_away(site: Site) -> Iterator[None]:
    """Nobody can write meanwhile: SQLite is locked, PostgreSQL is not there at all."""
    if site.postgres:
        site.postgres.stop()
        try:
            yield
        finally:
            site.postgres.start()
        return
    holder = sqlite3.connect(site.pitwall.var / "db.sqlite3", isolation_level=None, timeout=30)
    holder.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        holder.execute("ROLLBACK")
        holder.close()


@pytest.mark.parametrize("away_s", [2 * LEASE_S + 1, pytest.param(25, marks=pytest.mark.slow)])
def test_a_job_goes_on_while_the_database_is_away_and_its_points_arrive_afterwards(site: Site, away_s: float) -> None:
    """Longer than SQLite's own patience of 20 s in the slow case."""
    job_id, short = site.submit(**GPU, **ENDLESS), site.submit(**GPU, num_steps=400)
    attempt = site.wait_running(job_id)["attempts"][-1]["id"]
    site.wait_running(short)
    supervisor = site.supervisor_of(job_id)
    events = site.pitwall.var / "attempts" / str(attempt) / "events.jsonl"
    before = last_step(site, job_id)
    with database_away(site):
        size_bytes = events.stat().st_size
        time.sleep(away_s)
        assert events.stat().st_size > size_bytes + 10_000, "the engine trains on"
        assert is_alive(supervisor)
    steps_meanwhile = away_s / 2 / 0.01
    wait_until(lambda: last_step(site, job_id) > before + steps_meanwhile, 60, "the points of that time")
    assert len(site.pitwall.wait_for(short, "succeeded")["attempts"]) == 1, "its end is written once, late"
    assert_curve_is_whole(site, short)
    time.sleep(LEASE_S / 2)
    assert len(site.cancel(job_id)["attempts"]) == 1, "nobody took it for dead"
    assert_curve_is_whole(site, job_id)


# ------------------------------------------------------------------- cancel


def queued(site: Site) -> int:
    site.pitwall.sql("UPDATE jobs_queue SET paused_at = '2026-01-01 00:00:00+00:00'")
    return site.submit(**GPU, **ENDLESS)


def starting(site: Site) -> int:
    job_id = site.submit(**GPU, **ENDLESS, seed=Part.START_SLOWLY)
    site.pitwall.wait_for(job_id, "starting")
    wait_until(lambda: site.pitwall.processes_running("stand_in_engine"), what="its engine")
    return job_id


def running_with_ranks_that_ignore_sigterm(site: Site) -> int:
    job_id = site.submit(**TWO_GPUS, **ENDLESS, seed=Part.IGNORE_SIGTERM)
    site.wait_running(job_id)
    assert len(site.supervisor_of(job_id).children(recursive=True)) == 3
    return job_id


@pytest.mark.parametrize("put_there", [queued, starting, running_with_ranks_that_ignore_sigterm])
def test_a_job_can_be_cancelled_wherever_it_is(site: Site, put_there: Callable[[Site], int]) -> None:
    job_id = put_there(site)
    tree = [child for supervisor in site.supervisors() for child in supervisor.children(recursive=True)]
    try:
        site.cancel(job_id)
    finally:
        site.pitwall.sql("UPDATE jobs_queue SET paused_at = NULL")
    assert not any(map(is_alive, tree))
    assert site.pitwall.client.post(f"/jobs/{job_id}/cancel").status_code == 409


# ------------------------------------------------------------- jobs that misbehave


def test_a_job_that_kills_its_supervisor_is_tried_a_bounded_number_of_times(site: Site) -> None:
    job = site.pitwall.wait_for(site.submit(**GPU, **ENDLESS, seed=Part.KILL_SUPERVISOR), "lost")
    assert [attempt["outcome"] for attempt in job["attempts"]] == ["lost"] * 3
    site.pitwall.wait_for(site.submit(**GPU, **SHORT), "succeeded")


def test_a_fatal_error_ends_the_job_once_and_the_next_one_gets_a_clean_device(site: Site) -> None:
    job = site.pitwall.wait_for(site.submit(**TWO_GPUS, **ENDLESS, seed=Part.ABORT), "failed")
    (attempt,) = job["attempts"]
    assert "SIGABRT" in attempt["error"]["message"]
    site.pitwall.wait_for(site.submit(**TWO_GPUS, **SHORT), "succeeded")


def test_misbehaving_jobs_end_clearly_and_leave_others_alone(site: Site) -> None:
    """Beside one that trains on: a flood of output, a loss that is not a number, points by the million, a full disk."""
    other = site.submit(**GPU, **ENDLESS)
    site.wait_running(other)
    flood = site.submit(**GPU, num_steps=150, seed=Part.FLOOD_LOG)
    many = site.submit(**CPU, num_steps=1_000_000, seed=Part.MANY_POINTS)
    assert site.pitwall.wait_for(flood, "succeeded")
    attempt = site.pitwall.job(flood)["attempts"][-1]["id"]
    log = site.pitwall.var / "attempts" / str(attempt) / "log.txt"
    assert log.stat().st_size > 2**26, "it was a flood"
    assert log.stat().st_blocks * 512 < 2**26
    full = site.pitwall.wait_for(site.submit(**GPU, num_steps=1000, seed=Part.DISK_FULL), "failed")
    assert "File too large" in full["attempts"][-1]["error"]["traceback"]
    diverged = site.pitwall.wait_for(site.submit(**GPU, **SHORT, seed=Part.DIVERGE), "diverged")
    assert diverged["attempts"][-1]["error"]["step"] == 1
    site.pitwall.wait_for(many, "succeeded")
    curve = site.pitwall.client.get(f"/jobs/{many}/curves/train_loss?max_points=100").json()
    assert (curve["num_points_total"], curve["x"][0], curve["x"][-1]) == (1_000_000, 1, 1_000_000)
    assert math.isclose(curve["y"][-1], loss_at(1_000_000))
    assert len(site.cancel(other)["attempts"]) == 1
    assert_curve_is_whole(site, other)


# --------------------------------------------------------------- turns and rows


def test_a_large_job_starts_although_small_ones_keep_coming(site: Site) -> None:
    ahead = [site.submit(**GPU, num_steps=100) for _number in range(2)]
    large = site.submit(**TWO_GPUS, **SHORT)
    site.pitwall.sql("UPDATE jobs_job SET queued_at = '2026-01-01 00:00:00+00:00' WHERE id = ?", large)
    behind = [site.submit(**GPU, **SHORT) for _number in range(5)]
    for job_id in [*ahead, large, *behind]:
        site.pitwall.wait_for(job_id, "succeeded")
    claimed = {pk: site.pitwall.job(pk)["attempts"][0]["claimed_at"] for pk in [large, *behind]}
    assert claimed[large] < sorted(claimed[pk] for pk in behind)[2]


def test_pause_and_drain_outlive_a_restart_of_everything(site: Site) -> None:
    site.pitwall.sql("UPDATE jobs_queue SET paused_at = '2026-01-01 00:00:00+00:00'")
    site.pitwall.sql("UPDATE jobs_worker SET is_draining = ?", True)
    job_id = site.submit(**GPU, **SHORT)
    site.pitwall.stop()
    site.pitwall.start()
    assert_still_queued(site, job_id)
    site.pitwall.sql("UPDATE jobs_queue SET paused_at = NULL")
    assert_still_queued(site, job_id)
    site.pitwall.sql("UPDATE jobs_worker SET is_draining = ?", False)
    site.pitwall.wait_for(job_id, "succeeded", timeout_s=30)


def assert_still_queued(site: Site, job_id: int) -> None:
    """Although the relay has had time to wake the queue."""
    time.sleep(2 * RELAY_S)
    assert site.pitwall.job(job_id)["state"] == "queued"
