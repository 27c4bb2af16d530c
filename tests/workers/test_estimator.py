"""A worker answers what a spec would need by asking its engine, in a real process."""

import pytest

from jobs.services.estimates import want_estimate
from tests.jobs.factories import make_queue, make_spec, make_worker
from workers.estimator import answer_one

pytestmark = pytest.mark.django_db


def test_it_stores_what_the_engine_says() -> None:
    wanted = want_estimate(make_spec(optimizer="adam"), make_queue())
    worker = make_worker(queues=["default"])
    assert answer_one(worker.pk)
    wanted.refresh_from_db()
    assert wanted.told is not None
    assert wanted.told.weights_bytes == 4 * wanted.told.num_parameters
    assert not answer_one(worker.pk)


def test_it_stores_the_engines_sentence_where_the_spec_cannot_run() -> None:
    wanted = want_estimate(make_spec(cuda_graph=True, device="cpu"), make_queue())
    assert answer_one(make_worker(queues=["default"]).pk)
    wanted.refresh_from_db()
    assert wanted.told is None
    assert "cuda_graph" in wanted.problem
