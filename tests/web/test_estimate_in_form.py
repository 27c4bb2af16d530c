"""The form shows what a job would need once a worker has told it."""

import pytest
from django.test import Client

from jobs.models import Queue, SpecEstimate, Team
from jobs.services.estimates import store_answer, store_problem
from tests.jobs.factories import make_spec, make_worker
from tests.jobs.test_estimates import ANSWER


@pytest.fixture
def asked(team: Team, queue: Queue) -> dict[str, str]:
    """A form that a worker could run."""
    make_worker(queues=[queue.name])
    values = make_spec().model_dump(mode="json").items()
    spec = {name: str(value) for name, value in values if value is not None and value is not False}
    return spec | {"team": str(team.pk), "queue": str(queue.pk)}


def test_it_asks_shows_that_it_waits_and_then_the_answer(web: Client, asked: dict[str, str]) -> None:
    page = web.post("/jobs/check/", asked).content.decode()
    (wanted,) = SpecEstimate.objects.all()
    address = f"/jobs/estimates/{wanted.key}/"
    assert f'hx-get="{address}"' in page
    assert "as soon as a worker is not measuring" in web.get(address).content.decode()
    store_answer(wanted, ANSWER.model_copy(update={"peak_bytes": 3 * 2**30, "device_memory_bytes": 2 * 2**30}))
    answer = web.get(address).content.decode()
    assert "hx-get" not in answer
    assert "it will most likely run out of memory" in answer
    assert "it will most likely run out of memory" in web.post("/jobs/check/", asked).content.decode()


def test_it_says_why_there_is_no_estimate(web: Client, asked: dict[str, str]) -> None:
    web.post("/jobs/check/", asked)
    store_problem(SpecEstimate.objects.get(), "The engine is too old.")
    assert "The engine is too old." in web.post("/jobs/check/", asked).content.decode()


def test_nothing_is_asked_where_the_job_could_not_run(web: Client, asked: dict[str, str]) -> None:
    web.post("/jobs/check/", asked | {"cuda_graph": "True", "device": "cpu"})
    web.post("/jobs/check/", asked | {"micro_batch_size": "0"})
    assert not SpecEstimate.objects.exists()


def test_a_key_that_nobody_asked_for_is_not_found(web: Client, client: Client, asked: dict[str, str]) -> None:
    assert web.get("/jobs/estimates/unknown/").status_code == 404
    assert client.get("/jobs/estimates/unknown/").status_code == 302


def test_the_api_answers_202_until_a_worker_has_told_it(web: Client, asked: dict[str, str]) -> None:
    spec = make_spec().model_dump(mode="json")
    first = web.post("/api/v1/estimates", spec, content_type="application/json")
    assert (first.status_code, first.json()) == (202, {"estimate": None, "problem": None})
    store_answer(SpecEstimate.objects.get(), ANSWER)
    second = web.post("/api/v1/estimates", spec, content_type="application/json")
    assert second.status_code == 200
    assert second.json()["estimate"]["peak_bytes"] == ANSWER.peak_bytes


def test_the_api_refuses_what_no_worker_could_run(web: Client, asked: dict[str, str]) -> None:
    spec = make_spec(cuda_graph=True, device="cpu").model_dump(mode="json")
    refused = web.post("/api/v1/estimates", spec, content_type="application/json")
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == "cuda_graph"
