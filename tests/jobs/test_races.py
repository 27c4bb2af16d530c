"""The same row wanted by several at once: threads with connections of their own on a real database.

They also run on PostgreSQL, by tests/system/test_on_postgresql.py.
"""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TypeVar

import pytest
from django.db import connection

from jobs.contract.states import Outcome
from jobs.models import Attempt, Device, Job, Queue, Team, User
from jobs.services.cancel import request_cancel
from jobs.services.claim import claim_next
from jobs.services.errors import NotPossible, StaleFence
from jobs.services.finish import finish_attempt, reap_expired
from jobs.services.record import heartbeat, record_points
from tests.jobs.factories import make_job, make_spec, make_user, make_worker, points, start

pytestmark = pytest.mark.django_db(transaction=True)

T = TypeVar("T")


def at_once(actions: Sequence[Callable[[], T]]) -> list[T]:
    """What each of the actions returned; they begin together, each on a connection of its own."""
    ready = threading.Barrier(len(actions))

    def begin(action: Callable[[], T]) -> T:
        ready.wait()
        try:
            return action()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(actions)) as pool:
        return list(pool.map(begin, actions))


def claims_by(worker_ids: Sequence[int]) -> list[Attempt]:
    """The attempts that the workers got when all of them claimed at once."""
    attempts = at_once([lambda worker_id=worker_id: claim_next(worker_id) for worker_id in worker_ids])
    return [attempt for attempt in attempts if attempt]


def test_many_claimers_at_once_start_a_job_once() -> None:
    team = Team.objects.create(name="racers")
    owner, workers = make_user(team=team), [make_worker(f"host-{number}").pk for number in range(4)]
    for _round in range(10):
        job = make_job(owner, team=team)
        assert [attempt.job_id for attempt in claims_by(workers)] == [job.pk]
        assert job.attempts.count() == 1
        Job.objects.filter(pk=job.pk).update(state="succeeded", outcome="succeeded")
        Device.objects.update(attempt=None)


def test_hosts_that_claim_at_once_give_a_job_of_several_nodes_all_of_them_or_none() -> None:
    team = Team.objects.create(name="racers")
    owner, workers = make_user(team=team), [make_worker(f"host-{number}").pk for number in range(4)]
    spec = make_spec(device="cpu", num_nodes=2, parallelism="ddp")
    for _round in range(10):
        wide = [make_job(owner, team=team, spec=spec).pk for _number in range(2)]
        make_job(owner, team=team)
        attempts = claims_by(workers)
        assert [attempt.job_id for attempt in attempts if attempt.devices.count() == 2] in (wide, wide[::-1])
        assert len(attempts) == 2, "no host is left for the third"
        Job.objects.update(state="failed", outcome="failed")
        Device.objects.update(attempt=None)


@pytest.mark.parametrize("limit", ["max_running", "max_running_per_user"])
def test_hosts_that_claim_at_once_stay_within_a_limit(limit: str) -> None:
    team = Team.objects.create(name="racers")
    owner, workers = make_user(team=team), [make_worker(f"host-{number}").pk for number in range(4)]
    Queue.objects.update(**{limit: 2})
    for _number in range(6):
        make_job(owner, team=team)
    assert len(claims_by(workers)) == 2
    assert Job.objects.filter(state="starting").count() == 2


ROUNDS = int(os.environ.get("RACE_ROUNDS", "200"))


@pytest.fixture
def owner() -> User:
    return make_user(team=Team.objects.create(name="racers"))


def test_of_two_reapers_one_requeues_the_job(owner: User) -> None:
    worker = make_worker()
    for _round in range(ROUNDS):
        attempt = start(make_job(owner), worker)
        Attempt.objects.filter(pk=attempt.pk).update(lease_expires_at=attempt.claimed_at - timedelta(seconds=1))
        assert sum(at_once([reap_expired, reap_expired])) == 1
        job = Job.objects.get(pk=attempt.job_id)
        assert (job.state, job.fence) == ("queued", 2)
        put_away(job)


def test_a_heartbeat_and_a_reaper_never_both_win(owner: User) -> None:
    worker = make_worker()
    for _round in range(ROUNDS // 4):
        attempt = start(make_job(owner), worker)
        Attempt.objects.filter(pk=attempt.pk).update(lease_expires_at=attempt.claimed_at - timedelta(seconds=1))
        survived, reaped = at_once([lambda attempt=attempt: lands(lambda: heartbeat(attempt)), reap_expired])
        attempt.refresh_from_db()
        assert reaped == (attempt.outcome == "lost")
        assert survived != reaped
        put_away(Job.objects.get(pk=attempt.job_id))


def test_a_cancel_against_a_finish_is_one_end_and_a_free_device(owner: User) -> None:
    worker, outcomes = make_worker(), set()
    for number in range(ROUNDS):
        attempt = start(make_job(owner), worker)
        outcome = Outcome.FAILED if number % 2 else Outcome.SUCCEEDED

        def finish(attempt: Attempt = attempt, outcome: Outcome = outcome) -> Outcome:
            return finish_attempt(attempt, outcome)

        def cancel(attempt: Attempt = attempt) -> bool:
            return lands(lambda: request_cancel(attempt.job, owner))

        stored, _asked = at_once([finish, cancel])
        job = Job.objects.get(pk=attempt.job_id)
        attempt.refresh_from_db()
        assert job.outcome == attempt.outcome == stored
        assert stored in (outcome, Outcome.CANCELLED)
        assert not Device.objects.exclude(attempt=None).exists()
        outcomes.add(stored)
    assert Outcome.SUCCEEDED in outcomes


def test_a_cancel_against_a_claim_is_never_lost(owner: User) -> None:
    worker = make_worker()
    for _round in range(ROUNDS // 4):
        job = make_job(owner)
        at_once([lambda job=job: request_cancel(job, owner), lambda: claim_next(worker.pk)])
        job.refresh_from_db()
        assert job.cancel_requested_at
        assert job.state in ("cancelled", "starting")
        assert job.attempts.count() == (job.state == "starting")
        put_away(job)


def test_points_that_race_with_a_reaper_are_stored_for_a_living_owner_only(owner: User) -> None:
    """A write that was refused leaves nothing behind, and one that was not lies before the end of the attempt."""
    worker = make_worker()
    for _round in range(ROUNDS // 4):
        attempt = start(make_job(owner), worker)
        Attempt.objects.filter(pk=attempt.pk).update(lease_expires_at=attempt.claimed_at - timedelta(seconds=1))
        flush = [points([1], train_loss=[1.0])]
        stored, _ = at_once(
            [lambda attempt=attempt, flush=flush: lands(lambda: record_points(attempt, 0, flush)), reap_expired]
        )
        attempt.refresh_from_db()
        assert (attempt.num_points, attempt.chunks.count()) == (stored, stored)
        put_away(Job.objects.get(pk=attempt.job_id))


def lands(write: Callable[[], object]) -> bool:
    """Whether the write was accepted."""
    try:
        write()
    except (StaleFence, NotPossible):
        return False
    return True


def put_away(job: Job) -> None:
    """End the job without a race and free its device for the next round."""
    Job.objects.filter(pk=job.pk).update(state="failed", outcome="failed")
    Attempt.objects.filter(job=job, outcome=None).update(outcome="failed")
    Device.objects.update(attempt=None)
