import json
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client

from jobs.models import Job, User
from tests.jobs.factories import make_queue, make_team, make_user, make_worker


def post(api: Client, body: Any, query: str = "") -> HttpResponse:
    text = body if isinstance(body, str | bytes) else json.dumps(body)
    return api.post(f"/api/v1/jobs{query}", text, content_type="application/json")


def errors(response: HttpResponse) -> dict[str, str]:
    """Sentences by field, after a look at the shape."""
    body = response.json()
    assert set(body) == {"errors"}
    for error in body["errors"]:
        assert set(error) == {"field", "code", "message"}
        assert error["message"]
    fields = [error["field"] for error in body["errors"]]
    assert len(fields) == len(set(fields)), "one sentence per field"
    return {error["field"]: error["message"] for error in body["errors"]}


def test_the_body_is_the_spec(api: Client, alice: User) -> None:
    response = post(
        api, {"model": "gpt-tiny", "num_steps": 5, "precision": "bf16-mixed"}, "?name=first&team=Pit%20crew"
    )
    assert response.status_code == 201
    job = Job.objects.get(pk=response.json()["id"])
    assert (job.owner, job.team.name, job.name, job.queue.name) == (alice, "Pit crew", "first", "default")
    assert job.train_spec.precision == "bf16-mixed"
    assert response.json()["spec"] == job.spec
    assert response.json()["state"] == "queued"
    assert "No worker" in response.json()["waiting_for"]


def test_it_goes_to_the_queue_that_is_named(api: Client) -> None:
    make_queue("gpu")
    assert post(api, {"num_steps": 5}, "?queue=gpu").json()["queue"] == "gpu"


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({"num_steps": 5, "precision": "fp7"}, ["precision"]),
        ({"num_steps": "many"}, ["num_steps"]),
        ({"num_steps": 5.5}, ["num_steps"]),
        ({"num_steps": 0, "micro_batch_size": -1}, ["micro_batch_size", "num_steps"]),
        ({"num_steps": 5, "colour": "red"}, ["colour"]),
        ({"num_steps": 5, "learning_rate": "NaN"}, ["learning_rate"]),
        ({"num_steps": 5, "model": 7}, ["model"]),
        ({"num_steps": 5, "model": "gpt-huge"}, ["model"]),
        ({"num_steps": 5, "model": "mlp", "dataset": "stdlib-text"}, ["dataset"]),
        ({}, ["num_steps"]),
        ({"num_steps": 5, "num_epochs": 5}, ["num_epochs"]),
        ({"num_steps": 5, "pin_memory": True}, ["pin_memory"]),
        ([], ["spec"]),
        (3, ["spec"]),
        (None, ["spec"]),
    ],
)
def test_what_is_wrong_is_said_by_field_and_nothing_is_queued(api: Client, spec: Any, fields: list[str]) -> None:
    response = post(api, spec)
    assert response.status_code == 422
    assert sorted(errors(response)) == sorted(fields)
    assert not Job.objects.exists()


@pytest.mark.parametrize("body", ["{", "", b"\xff\xfe", "[" * 100_000, '{"num_steps": 5} extra'])
def test_what_is_not_json_is_said_so(api: Client, body: str | bytes) -> None:
    response = post(api, body)
    assert response.status_code in (400, 422)
    assert errors(response)
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("?queue=nowhere", "queue"),
        ("?team=Rivals", "team"),
        ("?quue=default", "quue"),
        (f"?name={'x' * 201}", "name"),
        ("?name=a%00b", "name"),
    ],
)
def test_a_wrong_parameter_is_named_and_nothing_is_queued(api: Client, stranger: User, query: str, field: str) -> None:
    response = post(api, {"num_steps": 5}, query)
    assert response.status_code == 422
    assert list(errors(response)) == [field]
    assert not Job.objects.exists()


def test_an_unknown_queue_is_told_which_there_are(api: Client) -> None:
    assert "default" in errors(post(api, {"num_steps": 5}, "?queue=nowhere"))["queue"]


def test_a_user_without_a_team_is_told_so(alice: User) -> None:
    from tests.jobs.conftest import client_of

    assert list(errors(post(client_of(make_user()), {"num_steps": 5}))) == ["team"]


def test_the_first_team_is_meant_where_none_is_named(api: Client, alice: User) -> None:
    make_team("Another").members.add(alice)
    assert post(api, {"num_steps": 5}).json()["team"] == "Another", "teams come by name"


def test_warnings_come_with_the_answer(api: Client) -> None:
    make_worker()
    response = post(api, {"num_steps": 5, "precision": "bf16-mixed", "device": "cpu"})
    assert response.status_code == 201
    for warning in response.json()["warnings"]:
        assert warning["severity"] == "warn"


def test_a_check_queues_nothing(api: Client) -> None:
    response = api.post("/api/v1/check", json.dumps({"model": "mlp", "num_steps": 5}), content_type="application/json")
    assert response.status_code == 200
    assert [finding["field"] for finding in response.json()["findings"]] == ["dataset"]
    assert not Job.objects.exists()


def test_sentences_are_translated(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message is looked up before its parameters are filled in."""
    asked: list[str] = []

    def fake(message: str) -> str:
        asked.append(message)
        return message.replace("Must be at least", "Wenigstens")

    monkeypatch.setattr("jobs.messages.gettext", fake)
    assert errors(post(api, {"num_steps": 0}))["num_steps"] == "Wenigstens 1."
    assert asked == ["Must be at least %(ge)s."]
