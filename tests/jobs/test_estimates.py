"""Estimates are asked for once, kept, and answered by a worker that measures nothing."""

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.contract.estimates import Estimate
from jobs.models import Queue, SpecEstimate
from jobs.services.estimates import store_answer, store_problem, take_wanted, want_estimate
from tests.jobs.factories import make_job, make_queue, make_spec, make_team, make_user, make_worker, start

pytestmark = pytest.mark.django_db

ANSWER = Estimate(
    num_parameters=10,
    flops_per_step=100.0,
    num_ranks=1,
    device_kind="cpu",
    weights_bytes=40,
    gradients_bytes=40,
    optimizer_state_bytes=80,
    activations_bytes=20,
    dataset_bytes=0,
    overhead_bytes=0,
    peak_bytes=180,
    device_memory_bytes=200,
)


@pytest.fixture
def queue() -> Queue:
    return make_queue()


def later(estimate: SpecEstimate, seconds: float) -> None:
    """As if `estimate` had last been looked for some seconds ago."""
    SpecEstimate.objects.filter(pk=estimate.pk).update(wanted_at=timezone.now() - timedelta(seconds=seconds))


def test_the_same_question_is_one_row_and_its_answer_stays(queue: Queue) -> None:
    first = want_estimate(make_spec(), queue)
    store_answer(first, ANSWER)
    again = want_estimate(make_spec(), queue)
    assert again.pk == first.pk
    assert again.told == ANSWER
    assert take_wanted(make_worker(queues=["default"]).pk) is None


def test_another_spec_and_another_queue_are_other_questions(queue: Queue) -> None:
    keys = {
        want_estimate(make_spec(), queue).key,
        want_estimate(make_spec(micro_batch_size=8), queue).key,
        want_estimate(make_spec(), make_queue("gpu")).key,
    }
    assert len(keys) == 3


def test_a_worker_takes_what_was_asked_last_on_its_queues_and_nobody_takes_it_again(queue: Queue) -> None:
    older, newer = want_estimate(make_spec(seed=1), queue), want_estimate(make_spec(seed=2), queue)
    later(older, 1)
    want_estimate(make_spec(), make_queue("gpu"))
    worker = make_worker(queues=["default"])
    assert take_wanted(worker.pk) == newer
    assert take_wanted(worker.pk) == older
    assert take_wanted(worker.pk) is None


def test_what_nobody_waits_for_any_more_is_not_answered(queue: Queue) -> None:
    later(want_estimate(make_spec(), queue), 60)
    worker = make_worker(queues=["default"])
    assert take_wanted(worker.pk) is None
    asked_again = want_estimate(make_spec(), queue)
    assert take_wanted(worker.pk) == asked_again


def test_a_worker_that_measures_leaves_questions_alone(queue: Queue) -> None:
    wanted, worker = want_estimate(make_spec(), queue), make_worker(queues=["default"])
    start(make_job(make_user(team=make_team()), queue=queue), worker)
    assert take_wanted(worker.pk) is None
    assert take_wanted(make_worker("idle", queues=["default"]).pk) == wanted


def test_a_question_whose_worker_died_over_it_is_taken_again(queue: Queue) -> None:
    wanted, worker = want_estimate(make_spec(), queue), make_worker(queues=["default"])
    assert take_wanted(worker.pk) == wanted
    SpecEstimate.objects.update(taken_at=timezone.now() - timedelta(minutes=5))
    assert take_wanted(worker.pk) == wanted


def test_a_problem_ends_the_waiting_too(queue: Queue) -> None:
    wanted = want_estimate(make_spec(), queue)
    store_problem(wanted, "It cannot be told.")
    wanted.refresh_from_db()
    assert wanted.is_answered
    assert wanted.told is None


def test_ranks_share_a_hosts_memory_but_not_a_gpus() -> None:
    two = ANSWER.model_copy(update={"num_ranks": 2})
    assert (ANSWER.fits, two.fits) == (True, False)
    assert two.model_copy(update={"device_kind": "cuda"}).fits
    assert ANSWER.model_copy(update={"device_memory_bytes": None}).fits is None
