"""Acting on jobs by the API: one, many, with a sentence per field or per job where it was refused."""

import json
from typing import Any

import pytest
from django.test import Client

from jobs.models import AuditEntry, Job, User
from jobs.selectors.line import waiting_in
from tests.jobs.conftest import client_of
from tests.jobs.factories import make_ended_job, make_job, make_queue, make_user


def send(client: Client, method: str, path: str, **body: Any) -> Any:
    return getattr(client, method)(f"/api/v1/{path}", json.dumps(body), content_type="application/json")


@pytest.fixture
def staff(db: None) -> Client:
    return client_of(make_user("boss", is_staff=True))


def test_a_job_that_waits_is_changed_in_all_that_is_named(staff: Client, alice: User) -> None:
    make_queue("night")
    job = make_job(alice)
    changes = {"priority": 3, "queue": "night", "time_limit_s": 60, "reason": "deadline"}
    answer = send(staff, "patch", f"jobs/{job.pk}", **changes).json()
    assert (answer["priority"], answer["queue"], answer["spec"]["time_limit_s"]) == (3, "night", 60)
    assert set(AuditEntry.objects.values_list("action", "reason")) == {
        ("priority", "deadline"),
        ("move", "deadline"),
        ("time_limit", "deadline"),
    }


def test_of_a_change_that_is_refused_nothing_remains(api: Client, alice: User) -> None:
    make_queue("night")
    job = make_job(alice, queue=make_queue("day"))
    refused = send(api, "patch", f"jobs/{job.pk}", time_limit_s=60, queue="day")
    assert (refused.status_code, refused.json()["errors"][0]["code"]) == (409, "not_possible")
    job.refresh_from_db()
    assert job.spec["time_limit_s"] is None
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"priority": 101}, "priority"),
        ({"queue": "nowhere"}, "queue"),
        ({"time_limit_s": 0}, "time_limit_s"),
        ({"place": "middle"}, "place"),
        ({"colour": "red"}, "colour"),
        ({"reason": "x" * 501}, "reason"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(api: Client, alice: User, body: dict[str, Any], field: str) -> None:
    response = send(api, "patch", f"jobs/{make_job(alice).pk}", **body)
    assert (response.status_code, response.json()["errors"][0]["field"]) == (422, field)


def test_a_job_is_placed_behind_another_one(staff: Client, alice: User) -> None:
    first, second, third = [make_job(alice) for _ in range(3)]
    send(staff, "patch", f"jobs/{third.pk}", after=first.pk)
    assert [job.pk for job in waiting_in(first.queue_id)] == [first.pk, third.pk, second.pk]
    send(staff, "patch", f"jobs/{second.pk}", place="first")
    assert [job.pk for job in waiting_in(first.queue_id)] == [second.pk, first.pk, third.pk]


def test_a_job_is_cancelled_queued_again_and_copied(api: Client, alice: User) -> None:
    job = make_job(alice)
    assert send(api, "post", f"jobs/{job.pk}/cancel", reason="oops").json()["state"] == "cancelled"
    assert send(api, "post", f"jobs/{job.pk}/requeue").json()["state"] == "queued"
    copy = send(api, "post", f"jobs/{job.pk}/clone")
    assert copy.status_code == 201
    assert copy.json()["id"] != job.pk
    assert copy.json()["spec"] == job.spec


def test_many_jobs_are_cancelled_each_for_itself(api: Client, alice: User, strangers_job: Job) -> None:
    waiting, ended = make_job(alice), make_ended_job(alice)
    ids = [waiting.pk, ended.pk, strangers_job.pk]
    results = send(api, "post", "jobs/bulk", act="cancel", jobs=ids, reason="clean up").json()["results"]
    assert [(result["job"], result["state"]) for result in results] == [
        (waiting.pk, "cancelled"),
        (ended.pk, "succeeded"),
        (strangers_job.pk, None),
    ]
    assert [bool(result["error"]) for result in results] == [False, True, True]
    strangers_job.refresh_from_db()
    assert strangers_job.state == "queued"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"act": "priority", "jobs": [1]}, "priority"),
        ({"act": "move", "jobs": [1]}, "queue"),
        ({"act": "explode", "jobs": [1]}, "act"),
        ({"act": "cancel", "jobs": []}, "jobs"),
        ({"act": "cancel", "jobs": list(range(501))}, "jobs"),
    ],
)
def test_a_bulk_act_that_lacks_something_does_nothing(
    api: Client, alice: User, body: dict[str, Any], field: str
) -> None:
    make_job(alice)
    response = send(api, "post", "jobs/bulk", **body)
    assert (response.status_code, response.json()["errors"][0]["field"]) == (422, field)
    assert not AuditEntry.objects.exists()


def test_copies_in_bulk_have_numbers_of_their_own(api: Client, alice: User) -> None:
    jobs = [make_job(alice) for _ in range(2)]
    results = send(api, "post", "jobs/bulk", act="clone", jobs=[job.pk for job in jobs]).json()["results"]
    copies = {result["id"] for result in results}
    assert len(copies) == 2
    assert copies.isdisjoint({job.pk for job in jobs})
