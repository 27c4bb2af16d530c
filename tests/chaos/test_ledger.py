"""The count of `make chaos` notices what it is there to notice."""

import pytest

from jobs.contract.states import Outcome
from jobs.models import Attempt, CurveChunk, Device, Job
from jobs.services.finish import finish_attempt
from tests.chaos import ledger
from tests.jobs.factories import make_job, make_spec, make_summary, points, record, start
from tests.stand_in_engine import loss_at

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def opened() -> None:
    ledger.open_ledger()


def finish_job(steps: int = 10, outcome: Outcome = Outcome.SUCCEEDED) -> Job:
    """A job of ten steps that ended as such a job should."""
    attempt = start(make_job(spec=make_spec(num_steps=10)))
    record(attempt, points(range(1, steps + 1), train_loss=[loss_at(step) for step in range(1, steps + 1)]))
    finish_attempt(attempt, outcome, make_summary())
    return Job.objects.select_related("last_attempt").get(pk=attempt.job_id)


def is_doubled(job: Job) -> bool:
    return ledger.is_doubled(job, ledger.entries("ended"), ledger.entries("changed after"))


def is_lost(job: Job) -> bool:
    return ledger.is_lost(job, ledger.entries("ended"))


def test_a_job_that_ended_as_it_should_is_neither() -> None:
    job = finish_job()
    assert not is_doubled(job)
    assert not is_lost(job)
    assert ledger.num_leaked_devices() == 0


def test_a_second_end_is_noticed() -> None:
    job = finish_job()
    Job.objects.filter(pk=job.pk).update(state="running", outcome=None)
    Job.objects.filter(pk=job.pk).update(state="failed", outcome="failed")
    assert is_doubled(job)


def test_a_write_to_an_attempt_that_had_ended_is_noticed() -> None:
    job = finish_job()
    Attempt.objects.filter(job=job).update(last_step=11)
    assert is_doubled(job)


def test_a_point_that_is_there_twice_is_noticed() -> None:
    job = finish_job()
    chunk = CurveChunk.objects.get()
    chunk.pk, chunk.sequence = None, 1
    chunk.save()
    assert is_doubled(job)


def test_a_job_that_never_ended_and_one_without_all_its_points_are_noticed() -> None:
    assert is_lost(finish_job(steps=9))
    assert is_lost(finish_job(outcome=Outcome.LOST))
    running = start(make_job())
    assert is_lost(running.job)
    assert ledger.num_leaked_devices() == 1


def test_a_device_left_in_quarantine_is_noticed() -> None:
    finish_job()
    Device.objects.update(quarantine_reason="something was left")
    assert ledger.num_leaked_devices() == 1
