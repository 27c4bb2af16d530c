import pytest

from jobs.contract.states import Outcome, State
from jobs.services.cancel import request_cancel
from jobs.services.errors import NotPossible
from jobs.services.finish import finish_attempt
from tests.jobs.factories import make_ended_job, make_job, make_user, start

pytestmark = pytest.mark.django_db


def test_a_queued_job_ends_at_once() -> None:
    user = make_user()
    job = request_cancel(make_job(), user, "not needed")
    assert (job.state, job.outcome) == (State.CANCELLED, Outcome.CANCELLED)
    assert (job.cancel_requested_by, job.cancel_reason) == (user, "not needed")
    assert job.ended_at


def test_a_running_job_keeps_running_until_its_supervisor_ends_it() -> None:
    job = make_job()
    attempt = start(job)
    request_cancel(job, make_user(), "enough")
    assert (job.state, job.outcome) == (State.RUNNING, None)
    assert job.cancel_requested_at
    finish_attempt(attempt, Outcome.FAILED)
    job.refresh_from_db()
    assert job.outcome == Outcome.CANCELLED


def test_a_second_request_changes_nothing() -> None:
    job, first, second = make_job(), make_user(), make_user()
    start(job)
    request_cancel(job, first, "one")
    request_cancel(job, second, "two")
    assert (job.cancel_requested_by, job.cancel_reason) == (first, "one")


@pytest.mark.parametrize("outcome", list(Outcome))
def test_a_job_that_has_ended_is_left_alone(outcome: Outcome) -> None:
    job = make_ended_job(outcome=outcome)
    with pytest.raises(NotPossible, match="already ended"):
        request_cancel(job, make_user())
    job.refresh_from_db()
    assert (job.outcome, job.cancel_requested_at) == (outcome, None)


def test_a_reason_that_is_too_long_is_refused_and_the_job_goes_on() -> None:
    job = make_job()
    with pytest.raises(NotPossible, match="500"):
        request_cancel(job, job.owner, "x" * 501)
    job.refresh_from_db()
    assert job.state == State.QUEUED
