"""Which checkpoint a new attempt goes on from."""

from collections.abc import Sequence

import pytest

from jobs.attempt_files import AttemptFiles
from jobs.contract.states import Outcome
from jobs.models import Attempt, Job
from jobs.services.claim import claim_next
from jobs.services.finish import finish_attempt, lose_attempt
from jobs.services.requeue import requeue_job
from tests.jobs.factories import make_job, make_spec, make_worker, points, record, start
from workers.resume import find_resumption

pytestmark = pytest.mark.django_db


def make_checkpointed_job(**values: object) -> Job:
    return make_job(spec=make_spec(checkpoint_every_steps=10, **values), max_attempts=5)


def leave(
    attempt: Attempt, steps: Sequence[int], outcome: Outcome = Outcome.LOST, *, num_stored: int | None = None
) -> None:
    """The attempt writes checkpoints and ends; its points are stored up to the last one, or up to `num_stored`."""
    last_step = max(steps, default=0) if num_stored is None else num_stored
    if last_step:
        record(attempt, points(range(1, last_step + 1), train_loss=range(last_step)))
    folder = AttemptFiles(attempt.pk).artifacts / "checkpoints"
    folder.mkdir(parents=True, exist_ok=True)
    for step in steps:
        (folder / f"step-{step:09d}.pt").touch()
    if outcome is Outcome.LOST:
        lose_attempt(attempt, "gone", release_devices=True)
    else:
        finish_attempt(attempt, outcome)


def next_attempt(job: Job) -> Attempt:
    job.refresh_from_db()
    if job.has_ended:
        requeue_job(job)
    attempt = claim_next(make_worker().pk)
    assert attempt is not None
    assert attempt.job_id == job.pk
    return attempt


def found(attempt: Attempt) -> tuple[int, int] | None:
    """The number of the attempt that it goes on from, and the step."""
    resumption = find_resumption(attempt)
    return (resumption.origin.number, resumption.step) if resumption else None


def test_a_first_attempt_begins_anew() -> None:
    assert found(start(make_checkpointed_job())) is None


@pytest.mark.parametrize("outcome", [Outcome.LOST, Outcome.CANCELLED, Outcome.TIMED_OUT, Outcome.FAILED])
def test_the_next_one_goes_on_from_the_last_checkpoint(outcome: Outcome) -> None:
    job = make_checkpointed_job()
    leave(start(job), [10, 20], outcome)
    assert found(next_attempt(job)) == (1, 20)


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.DIVERGED])
def test_after_work_that_was_done_or_went_wrong_it_begins_anew(outcome: Outcome) -> None:
    job = make_checkpointed_job()
    leave(start(job), [10, 20], outcome)
    assert found(next_attempt(job)) is None


def test_an_attempt_that_died_before_its_first_checkpoint_costs_nothing_of_the_one_before() -> None:
    job = make_checkpointed_job()
    leave(start(job), [10, 20])
    leave(next_attempt(job), [])
    assert found(next_attempt(job)) == (1, 20)


def test_an_attempt_that_was_lost_after_its_last_step_is_gone_on_from_there() -> None:
    job = make_checkpointed_job(num_steps=30)
    leave(start(job), [20, 30])
    assert found(next_attempt(job)) == (1, 30)


def test_a_checkpoint_ahead_of_the_stored_points_is_not_gone_on_from() -> None:
    """The supervisor was killed before it had delivered them, so the curve would have a gap."""
    job = make_checkpointed_job()
    leave(start(job), [10, 20], num_stored=19)
    assert found(next_attempt(job)) == (1, 10)


def test_a_spec_that_asks_for_no_checkpoints_begins_anew() -> None:
    job = make_job(max_attempts=5)
    leave(start(job), [10])
    assert found(next_attempt(job)) is None
