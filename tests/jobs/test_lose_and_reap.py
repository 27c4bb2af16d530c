from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.contract.states import Outcome, State
from jobs.models import Attempt, Device
from jobs.services.cancel import request_cancel
from jobs.services.claim import claim_next
from jobs.services.finish import finish_attempt, lose_attempt, reap_expired
from jobs.services.record import heartbeat
from tests.jobs.factories import make_job, make_user, make_worker, start

pytestmark = pytest.mark.django_db


def expire(attempt: Attempt) -> None:
    Attempt.objects.filter(pk=attempt.pk).update(lease_expires_at=timezone.now() - timedelta(seconds=1))


def test_a_lost_job_waits_again_at_its_old_place_while_attempts_are_left() -> None:
    job = make_job(max_attempts=2)
    attempt = start(job)
    assert lose_attempt(attempt, "gone", release_devices=True) is State.QUEUED
    before, _ = job.queued_at, job.refresh_from_db()
    attempt.refresh_from_db()
    assert (job.state, job.outcome, job.fence, job.queued_at) == (State.QUEUED, None, 2, before)
    assert (attempt.outcome, attempt.error["message"]) == (Outcome.LOST, "gone")


def test_the_last_attempt_lost_is_the_job_lost() -> None:
    job = make_job(max_attempts=2)
    worker = make_worker()
    for _number in (1, 2):
        attempt = start(job, worker)
        state = lose_attempt(attempt, "gone", release_devices=True)
    assert state is State.LOST
    job.refresh_from_db()
    assert (job.state, job.outcome, job.attempts.count()) == (State.LOST, Outcome.LOST, 2)
    assert job.ended_at


def test_a_job_whose_end_was_requested_is_cancelled_not_started_again() -> None:
    job = make_job()
    attempt = start(job)
    request_cancel(job, make_user())
    assert lose_attempt(attempt, "gone", release_devices=True) is State.CANCELLED
    attempt.refresh_from_db()
    assert attempt.outcome == Outcome.CANCELLED


def test_devices_stay_leased_until_no_process_is_known_to_be_left() -> None:
    attempt = start(make_job())
    lose_attempt(attempt, "silent", release_devices=False)
    assert attempt.devices.exists()


def test_devices_are_freed_where_the_caller_knows_that_nothing_runs() -> None:
    attempt = start(make_job())
    lose_attempt(attempt, "its process is gone", release_devices=True)
    assert not Device.objects.exclude(attempt=None).exists()


def test_the_reaper_takes_only_what_is_silent() -> None:
    silent, heard = start(make_job(), make_worker("a")), start(make_job(), make_worker("b"))
    expire(silent)
    assert reap_expired() == 1
    silent.refresh_from_db()
    heard.refresh_from_db()
    assert (silent.outcome, heard.outcome) == (Outcome.LOST, None)


def test_an_owner_that_is_heard_from_at_the_last_moment_keeps_its_job() -> None:
    """The reaper has seen the lease run out, and then the heartbeat comes before the reaper's write."""
    attempt = start(make_job())
    expire(attempt)
    heartbeat(attempt)
    assert lose_attempt(attempt, "silent", release_devices=False, only_if_expired=True) is None
    attempt.refresh_from_db()
    assert attempt.outcome is None


def test_devices_on_which_something_was_left_go_into_quarantine() -> None:
    lost, ended = start(make_job(), make_worker("a")), start(make_job(), make_worker("b"))
    lose_attempt(lost, "gone", release_devices=True, left_behind="Left by job 1: python (12)")
    finish_attempt(ended, Outcome.CANCELLED, left_behind="Left by job 2: python (13)")
    reasons = list(Device.objects.order_by("worker__hostname").values_list("quarantine_reason", "attempt"))
    assert reasons == [("Left by job 1: python (12)", None), ("Left by job 2: python (13)", None)]


def test_the_next_attempt_has_the_next_number_and_a_newer_fence() -> None:
    job = make_job()
    lost = start(job)
    lose_attempt(lost, "gone", release_devices=True)
    attempt = claim_next(lost.worker_id or 0)
    assert attempt is not None
    assert attempt.number == 2
    assert attempt.fence > lost.fence + 0
