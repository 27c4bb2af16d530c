import json
import math
from typing import Any

import pytest
from django.test import Client

from jobs.contract.events import ErrorInfo
from jobs.contract.findings import Finding, Severity
from jobs.contract.metrics import Summary
from jobs.contract.states import Outcome
from jobs.models import Job, User
from jobs.services.finish import finish_attempt, lose_attempt
from tests.jobs.factories import make_ended_job, make_job, make_summary, make_worker, points, record, start, warn


def no_constant(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


def get(api: Client, address: str) -> Any:
    response = api.get(f"/api/v1/{address}")
    assert response.status_code == 200, response.content
    return json.loads(response.content, parse_constant=no_constant)


def test_a_job_has_all_that_was_asked_and_measured(api: Client, alice: User) -> None:
    job = make_ended_job(alice, name="first")
    body = get(api, f"jobs/{job.pk}")
    assert (body["id"], body["name"], body["owner"], body["queue"]) == (job.pk, "first", "alice", "default")
    assert (body["state"], body["outcome"]) == ("succeeded", "succeeded")
    assert body["spec"]["device"] == "auto"
    assert body["resolved_spec"]["device"] == "cpu"
    assert set(body["summary"]) == set(Summary.model_fields), "the engine's own names"
    assert body["summary"]["steady_step_time_ms"] == 10.0
    assert body["series"] == ["train_loss"]
    [attempt] = body["attempts"]
    assert (attempt["number"], attempt["worker"], attempt["device_name"]) == (1, "box", "Fast CPU")
    assert attempt["versions"]["torch"] == "2.13.0"
    assert attempt["hardware"]["num_cpu_cores"] == 6
    assert [device["memory_bytes"] for device in attempt["hardware"]["devices"]] == [8 * 2**30]
    assert attempt["error"] is None


def test_a_queued_job_has_no_figures_yet(api: Client, alice: User) -> None:
    body = get(api, f"jobs/{make_job(alice).pk}")
    assert (body["outcome"], body["resolved_spec"], body["attempts"]) == (None, None, [])
    assert set(body["summary"].values()) == {None}


def test_every_attempt_is_told_with_its_error_and_warnings(api: Client, alice: User) -> None:
    job = make_job(alice)
    worker = make_worker()
    lose_attempt(start(job, worker), "its host went away", release_devices=True)
    attempt = start(job, worker)
    warn(
        attempt,
        Finding(code="warn_seed", field="seed", severity=Severity.WARN, message="%(n)s is odd.", params={"n": 7}),
    )
    finish_attempt(
        attempt, Outcome.FAILED, None, ErrorInfo(type="ValueError", message="boom", traceback="line 1", step=3)
    )
    body = get(api, f"jobs/{job.pk}")
    assert [attempt["outcome"] for attempt in body["attempts"]] == ["lost", "failed"]
    assert body["attempts"][0]["error"]["message"] == "its host went away"
    assert body["attempts"][1]["error"]["traceback"] == "line 1"
    assert body["warnings"] == [{"field": "seed", "code": "warn_seed", "severity": "warn", "message": "7 is odd."}]


def test_numbers_that_are_not_finite_travel_as_strings(api: Client, alice: User) -> None:
    job = make_job(alice)
    attempt = start(job)
    record(attempt, points([1, 2, 3], train_loss=[math.nan, math.inf, -math.inf]))
    finish_attempt(attempt, Outcome.DIVERGED, make_summary(final_train_loss=math.nan))
    assert get(api, f"jobs/{job.pk}")["summary"]["final_train_loss"] == "NaN"
    assert get(api, f"jobs/{job.pk}/curves/train_loss")["y"] == ["NaN", "Infinity", "-Infinity"]
    assert get(api, "jobs")["jobs"][0]["summary"]["final_train_loss"] == "NaN"
    metrics = {row["name"]: row["values"] for row in get(api, f"compare?jobs={job.pk}")["metrics"]}
    assert metrics["final_train_loss"] == ["NaN"]


def test_a_queued_job_is_cancelled_at_once(api: Client, alice: User) -> None:
    job = make_job(alice)
    response = api.post(f"/api/v1/jobs/{job.pk}/cancel", '{"reason": "a typo"}', content_type="application/json")
    assert response.status_code == 200
    assert (response.json()["state"], response.json()["cancel_reason"]) == ("cancelled", "a typo")


@pytest.mark.parametrize("body", ["", "{}", '{"reason": ""}'])
def test_a_reason_is_optional(api: Client, alice: User, body: str) -> None:
    job = make_job(alice)
    response = api.post(f"/api/v1/jobs/{job.pk}/cancel", body, content_type="application/json")
    assert response.status_code == 200


def test_a_running_job_is_asked_to_end(api: Client, alice: User) -> None:
    job = make_job(alice)
    start(job)
    body = api.post(f"/api/v1/jobs/{job.pk}/cancel", content_type="application/json").json()
    assert body["state"] == "running"
    assert body["cancel_requested_at"]


def test_a_job_that_has_ended_cannot_be_cancelled(api: Client, alice: User) -> None:
    job = make_ended_job(alice)
    response = api.post(f"/api/v1/jobs/{job.pk}/cancel", content_type="application/json")
    assert response.status_code == 409
    assert "already ended" in response.json()["errors"][0]["message"]


@pytest.mark.parametrize(("body", "field"), [({"reason": "x" * 501}, "reason"), ({"why": "x"}, "why")])
def test_a_wrong_reason_is_named(api: Client, alice: User, body: dict[str, str], field: str) -> None:
    job = make_job(alice)
    response = api.post(f"/api/v1/jobs/{job.pk}/cancel", json.dumps(body), content_type="application/json")
    assert response.status_code == 422
    assert [error["field"] for error in response.json()["errors"]] == [field]
    assert Job.objects.get(pk=job.pk).state == "queued"


def test_looking_at_a_job_is_a_handful_of_queries(api: Client, alice: User, django_assert_max_num_queries: Any) -> None:
    job = make_job(alice, max_attempts=9)
    worker = make_worker()
    for _number in range(4):
        lose_attempt(start(job, worker), "gone", release_devices=True)
    api.get("/api/v1/jobs")
    with django_assert_max_num_queries(22):
        get(api, f"jobs/{job.pk}")
