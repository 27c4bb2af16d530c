import pytest

from jobs.contract.states import Outcome, State
from jobs.models import Job
from jobs.models.job import Origin
from jobs.services.cancel import request_cancel
from jobs.services.claim import claim_next
from jobs.services.errors import NotPossible
from jobs.services.finish import lose_attempt
from jobs.services.requeue import requeue_job
from tests.jobs.factories import make_ended_job, make_job, make_user, make_worker, start

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("outcome", list(Outcome))
def test_a_job_that_ended_runs_again_as_a_new_attempt(outcome: Outcome) -> None:
    job = requeue_job(make_ended_job(outcome=outcome))
    assert (job.state, job.outcome, job.ended_at) == (State.QUEUED, None, None)
    attempt = claim_next(make_worker().pk)
    assert attempt is not None
    assert (attempt.job_id, attempt.number) == (job.pk, 2)
    assert job.attempts.get(number=1).outcome == outcome


def test_it_waits_behind_those_that_wait_already() -> None:
    job = make_ended_job()
    waiting = make_job()
    requeue_job(job)
    attempt = claim_next(make_worker().pk)
    assert attempt is not None
    assert attempt.job_id == waiting.pk


def test_a_request_to_cancel_that_it_ended_by_does_not_end_it_again() -> None:
    job = make_job()
    request_cancel(job, make_user(), "not now")
    assert requeue_job(job).cancel_reason == ""
    assert claim_next(make_worker().pk) is not None


def test_it_has_all_its_attempts_before_it() -> None:
    job = make_job(max_attempts=1)
    worker = make_worker()
    assert lose_attempt(start(job, worker), "gone", release_devices=True) is State.LOST
    job.refresh_from_db()
    requeue_job(job)
    states = [lose_attempt(start(job, worker), "gone", release_devices=True) for _number in range(3)]
    assert states == [State.QUEUED, State.QUEUED, State.LOST]


def test_a_job_that_waits_or_runs_is_not_queued_again() -> None:
    running, waiting = make_job(), make_job()
    start(running)
    for job in (running, waiting):
        with pytest.raises(NotPossible):
            requeue_job(job)
    assert Job.objects.get(pk=running.pk).state == State.RUNNING


def test_an_imported_job_never_ran_here() -> None:
    job = make_ended_job(origin=Origin.IMPORTED)
    with pytest.raises(NotPossible, match="imported"):
        requeue_job(job)
