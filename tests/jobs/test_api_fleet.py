"""Queues, devices and use by the API."""

import json
from typing import Any

import pytest
from django.test import Client

from jobs.contract.facts import DeviceSample
from jobs.models import AuditEntry, Job, Queue, User
from jobs.services.workers import record_samples
from tests.jobs.conftest import client_of
from tests.jobs.factories import make_ended_job, make_job, make_user, make_worker, start


def send(client: Client, method: str, path: str, **body: Any) -> Any:
    return getattr(client, method)(f"/api/v1/{path}", json.dumps(body), content_type="application/json")


@pytest.fixture
def staff(db: None) -> Client:
    return client_of(make_user("boss", is_staff=True))


def test_a_queues_settings_are_changed_and_the_change_is_kept(staff: Client, queue: Queue) -> None:
    answer = send(staff, "patch", "queues/default", max_running=4, default_priority=2, reason="new hosts").json()
    assert (answer["max_running"], answer["default_priority"], answer["max_running_per_user"]) == (4, 2, None)
    send(staff, "patch", "queues/default", max_running=None)
    queue.refresh_from_db()
    assert (queue.max_running, queue.default_priority) == (None, 2)
    changes = [(entry.reason, entry.detail["changes"]) for entry in AuditEntry.objects.order_by("pk")]
    assert (
        changes
        == [
            ("new hosts", "Default priority: 0 → 2; Jobs at once: none → 4"),
            ("", "Jobs at once: 4 → none"),
        ]
        or changes[0][1] == "Jobs at once: none → 4; Default priority: 0 → 2"
    )


@pytest.mark.parametrize(
    ("body", "field"),
    [({"max_running": 0}, "max_running"), ({"max_attempts": 0}, "max_attempts"), ({"colour": "red"}, "colour")],
)
def test_a_wrong_setting_is_said_at_its_field(staff: Client, queue: Queue, body: dict[str, Any], field: str) -> None:
    response = send(staff, "patch", "queues/default", **body)
    assert (response.status_code, response.json()["errors"][0]["field"]) == (422, field)


def test_the_line_is_in_order_and_hides_what_is_another_teams(api: Client, alice: User, strangers_job: Job) -> None:
    mine = make_job(alice, name="mine", priority=1)
    rows = api.get("/api/v1/queues/default/line").json()["waiting"]
    assert [(row["place"], row["job"], row["title"], row["owner"]) for row in rows] == [
        (1, mine.pk, "mine", "alice"),
        (2, strangers_job.pk, None, None),
    ]
    assert api.get("/api/v1/queues/nowhere/line").status_code == 404


def test_the_line_goes_on_page_by_page(api: Client, alice: User) -> None:
    jobs = [make_job(alice) for _ in range(60)]
    first = api.get("/api/v1/queues/default/line").json()
    second = api.get(f"/api/v1/queues/default/line?after={first['next_after']}").json()
    assert [row["job"] for row in first["waiting"] + second["waiting"]] == [job.pk for job in jobs]
    assert [row["place"] for row in first["waiting"] + second["waiting"]] == list(range(1, 61))
    assert second["next_after"] is None


def test_a_device_is_taken_out_and_released_by_hand(staff: Client) -> None:
    device = make_worker().devices.get()
    assert send(staff, "post", f"devices/{device.pk}/quarantine", reason="fan is loud").status_code == 204
    assert staff.get("/api/v1/workers").json()["workers"][0]["devices"][0]["quarantine_reason"] == "fan is loud"
    assert send(staff, "post", f"devices/{device.pk}/release", reason="new fan").status_code == 204
    device.refresh_from_db()
    assert device.is_in_service
    acts = [(entry.actor_name, entry.action, entry.reason) for entry in AuditEntry.objects.order_by("pk")]
    assert acts == [("boss", "quarantine", "fan is loud"), ("boss", "release", "new fan")]


def test_a_device_with_a_running_job_is_not_released(staff: Client) -> None:
    attempt = start(make_job())
    assert send(staff, "post", f"devices/{attempt.devices.get().pk}/release").status_code == 409


def test_devices_tell_what_they_are_busy_with(api: Client) -> None:
    device = make_worker().devices.get()
    record_samples({device.pk: DeviceSample(utilization_percent=42, temperature_c=55)})
    sample = api.get("/api/v1/workers").json()["workers"][0]["devices"][0]["sample"]
    assert (sample["utilization_percent"], sample["temperature_c"], sample["power_w"]) == (42, 55, None)


def test_waits_and_use_are_told_along_the_same_parts_of_the_time(staff: Client) -> None:
    make_ended_job()
    for span, count in (("day", 24), ("week", 28)):
        use = staff.get(f"/api/v1/fleet/use?span={span}&queue=default").json()
        lengths = {len(use[name]) for name in ("starts", "num_started", "median_wait_s", "p90_wait_s")}
        assert lengths == {count} == {len(use["hosts"][0]["leased"])}
        assert (sum(use["num_started"]), sum(use["ended"]["succeeded"])) == (1, 1)
    assert staff.get("/api/v1/fleet/use?span=year").status_code == 422
