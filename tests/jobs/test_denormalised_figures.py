"""A job's own figures are those of the attempt that it ended with, finite ones only."""

import math

from jobs.contract.states import Outcome
from jobs.models import User
from jobs.services.finish import finish_attempt
from jobs.services.requeue import requeue_job
from tests.jobs.factories import make_ended_job, make_job, make_summary, start


def test_they_come_with_the_end_and_go_with_the_next_attempt(alice: User) -> None:
    job = make_ended_job(alice, summary={"steady_step_time_ms": 4.0, "final_train_loss": math.nan})
    assert (job.steady_step_time_ms, job.final_train_loss) == (4.0, None)
    assert job.samples_per_s == job.last_attempt.samples_per_s
    job = requeue_job(job, alice)
    assert job.steady_step_time_ms is None
    finish_attempt(start(job), Outcome.SUCCEEDED, make_summary(steady_step_time_ms=3.0))
    job.refresh_from_db()
    assert job.steady_step_time_ms == 3.0


def test_infinity_has_no_place_in_an_order(alice: User) -> None:
    assert make_ended_job(alice, summary={"final_eval_loss": math.inf}).final_eval_loss is None


def test_a_run_without_figures_has_none(alice: User) -> None:
    job = make_job(alice)
    finish_attempt(start(job), Outcome.FAILED)
    job.refresh_from_db()
    assert (job.steady_step_time_ms, job.model, job.precision) == (None, "gpt-tiny", "fp32")
