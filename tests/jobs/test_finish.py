import math

import pytest
from django.utils import timezone

from jobs.contract.events import ErrorInfo
from jobs.contract.states import Outcome, State
from jobs.models import Device
from jobs.services.cancel import request_cancel
from jobs.services.errors import StaleFence
from jobs.services.finish import finish_attempt, lose_attempt
from tests.jobs.factories import make_job, make_summary, make_user, start

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome is not Outcome.CANCELLED])
def test_job_and_attempt_end_in_the_same_outcome(outcome: Outcome) -> None:
    job = make_job()
    attempt = start(job)
    assert finish_attempt(attempt, outcome, make_summary()) is outcome
    job.refresh_from_db()
    attempt.refresh_from_db()
    assert (job.state, job.outcome, attempt.outcome) == (outcome, outcome, outcome)
    assert job.ended_at
    assert attempt.ended_at


def test_the_summary_is_kept_whole_and_its_ranked_figures_as_columns() -> None:
    attempt = start(make_job())
    summary = make_summary(steady_step_time_ms=7.5, observed_dtype="bfloat16", final_train_loss=math.inf)
    finish_attempt(attempt, Outcome.SUCCEEDED, summary)
    attempt.refresh_from_db()
    assert attempt.measured == summary
    assert attempt.steady_step_time_ms == 7.5
    assert attempt.summary["final_train_loss"] == "Infinity"


def test_a_loss_that_is_not_a_number_is_kept() -> None:
    attempt = start(make_job())
    finish_attempt(attempt, Outcome.DIVERGED, make_summary(final_train_loss=math.nan))
    attempt.refresh_from_db()
    assert math.isnan(attempt.measured.final_train_loss)


def test_the_error_is_kept() -> None:
    attempt = start(make_job())
    error = ErrorInfo(type="RuntimeError", message="boom", traceback="Traceback ...", step=3)
    finish_attempt(attempt, Outcome.FAILED, error=error)
    attempt.refresh_from_db()
    assert ErrorInfo.model_validate(attempt.error) == error


def test_the_devices_are_free_afterwards() -> None:
    attempt = start(make_job())
    assert attempt.devices.exists()
    finish_attempt(attempt, Outcome.FAILED)
    assert not Device.objects.exclude(attempt=None).exists()


def test_an_attempt_ends_once() -> None:
    job = make_job()
    attempt = start(job)
    finish_attempt(attempt, Outcome.SUCCEEDED, make_summary())
    with pytest.raises(StaleFence):
        finish_attempt(attempt, Outcome.FAILED)
    job.refresh_from_db()
    assert job.outcome == Outcome.SUCCEEDED


def test_an_owner_whose_fence_is_stale_ends_nothing_and_frees_nothing() -> None:
    job = make_job()
    attempt = start(job)
    lose_attempt(attempt, "gone", release_devices=False)
    with pytest.raises(StaleFence):
        finish_attempt(attempt, Outcome.SUCCEEDED, make_summary())
    job.refresh_from_db()
    attempt.refresh_from_db()
    assert (job.state, attempt.outcome, attempt.summary) == (State.QUEUED, Outcome.LOST, {})
    assert attempt.devices.exists()


@pytest.mark.parametrize(
    ("outcome", "stored"), [(Outcome.FAILED, Outcome.CANCELLED), (Outcome.SUCCEEDED, Outcome.SUCCEEDED)]
)
def test_a_request_to_cancel_decides_unless_the_work_was_done(outcome: Outcome, stored: Outcome) -> None:
    job = make_job()
    attempt = start(job)
    request_cancel(job, make_user(), "enough")
    assert finish_attempt(attempt, outcome) is stored
    job.refresh_from_db()
    assert job.outcome == stored


def test_times_are_in_order() -> None:
    job = make_job()
    attempt = start(job)
    finish_attempt(attempt, Outcome.SUCCEEDED, make_summary())
    attempt.refresh_from_db()
    assert attempt.claimed_at <= attempt.running_at <= attempt.ended_at <= timezone.now()
