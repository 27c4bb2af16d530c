"""A queue's page: its line in order, what staff set, what members see of it."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from jobs.contract.facts import DeviceSample
from jobs.models import AuditEntry, Device, Job, Queue, User, Worker
from jobs.selectors.line import PAGE_SIZE
from jobs.services.finish import lose_attempt
from jobs.services.queues import pause_queue
from jobs.services.workers import record_samples
from tests.jobs.factories import make_job, make_spec, make_worker, points, record, start
from tests.web.conftest import browser_of


def places(client: Client, query: str = "") -> list[tuple[int, int]]:
    rows = client.get(f"/fleet/queues/default/{query}").context["rows"]
    return [(each.row.place, each.row.job.pk) for each in rows]


def test_the_line_stands_in_order_with_places(boss: User, alice: User, queue: Queue) -> None:
    late, urgent, early = (
        make_job(alice),
        make_job(alice, priority=3),
        make_job(alice, queued_at=timezone.now() - timedelta(hours=1)),
    )
    assert places(browser_of(boss)) == [(1, urgent.pk), (2, early.pk), (3, late.pk)]


def test_a_long_line_goes_on_where_the_page_before_ended(boss: User, alice: User, queue: Queue) -> None:
    jobs = [make_job(alice) for _ in range(PAGE_SIZE + 3)]
    staff = browser_of(boss)
    page = staff.get("/fleet/queues/default/").context["page"]
    assert page.next_after == jobs[PAGE_SIZE - 1].pk
    assert places(staff, f"?after={page.next_after}") == [
        (PAGE_SIZE + place, job.pk) for place, job in enumerate(jobs[PAGE_SIZE:], start=1)
    ]
    assert places(staff, "?after=nonsense")[0] == places(staff, "?after=999999")[0] == (1, jobs[0].pk)


def test_members_see_the_line_without_what_is_another_teams(web: Client, alice: User, stranger: User) -> None:
    mine, theirs = make_job(alice, name="mine"), make_job(stranger, name="secret plan")
    page = web.get("/fleet/queues/default/").content.decode()
    assert "mine" in page
    assert "secret plan" not in page
    assert "stranger" not in page
    assert f"Job #{theirs.pk} of another team" in page
    assert f'id="grip-{mine.pk}"' in page
    assert f'id="grip-{theirs.pk}"' not in page
    assert 'id="queue-settings"' not in page
    assert "pause-" not in page


def test_what_runs_says_when_it_ends(boss: User, alice: User, queue: Queue) -> None:
    job = make_job(alice, spec=make_spec(num_steps=36_101))
    record(start(job, make_worker("pit-01")), points([1, 101], train_loss=[3.0, 2.0]))  # 10 ms a step
    response = browser_of(boss).get("/fleet/queues/default/")
    [row] = response.context["running"]
    assert row.ends_in_s == pytest.approx(360, abs=1)
    assert "6 min" in response.content.decode()


def test_staff_set_limits_and_the_page_and_its_history_show_them(boss: User, queue: Queue) -> None:
    staff = browser_of(boss)
    values = {"description": "all", "default_priority": "1", "max_running": "7", "max_attempts": "2"}
    page = staff.post("/fleet/queues/default/settings/", values | {"reason": "new hosts"}, follow=True).content.decode()
    queue.refresh_from_db()
    assert (queue.max_running, queue.max_running_per_user, queue.max_attempts) == (7, None, 2)
    assert "of at most 7" in page
    assert "Jobs at once: none → 7" in page
    assert "new hosts" in page


def test_a_wrong_limit_is_said_and_changes_nothing(boss: User, queue: Queue) -> None:
    values = {"default_priority": "1", "max_running": "0", "max_attempts": "2"}
    page = browser_of(boss).post("/fleet/queues/default/settings/", values, follow=True).content.decode()
    assert "Ensure this value is greater than or equal to 1." in page
    assert not AuditEntry.objects.exists()


def test_a_member_sets_nothing(web: Client, queue: Queue) -> None:
    assert web.post("/fleet/queues/default/settings/", {"max_running": "1"}).status_code == 403


def test_the_administration_notes_a_change_of_a_queue_too(boss: User, queue: Queue) -> None:
    boss.is_superuser = True
    boss.save()
    values = {"description": "", "default_priority": "4", "max_attempts": "3"}
    browser_of(boss).post(f"/admin/jobs/queue/{queue.pk}/change/", values)
    queue.refresh_from_db()
    assert queue.default_priority == 4
    assert AuditEntry.objects.get().detail == {"changes": "Default priority: 0 → 4"}


def test_a_pause_has_a_way_back(boss: User, queue: Queue) -> None:
    page = browser_of(boss).post("/fleet/queues/default/pause/", {"reason": "cooling"}, follow=True).content.decode()
    assert 'action="/fleet/queues/default/resume/"' in page


def test_an_unknown_queue_is_not_there(web: Client) -> None:
    assert web.get("/fleet/queues/nowhere/").status_code == 404


def test_htmx_gets_the_living_part(web: Client, job: Job) -> None:
    page = web.get("/fleet/queues/default/", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in page
    assert f'data-live-topics="queue:{job.queue_id}"' in page


def test_the_page_costs_no_more_queries_for_a_longer_line(
    boss: User, alice: User, queue: Queue, django_assert_max_num_queries: object
) -> None:
    make_worker()
    staff = browser_of(boss)
    for _ in range(30):
        make_job(alice)
    with django_assert_max_num_queries(24):  # type: ignore[operator]
        staff.get("/fleet/queues/default/")


def test_a_paused_queue_says_by_whom_and_why(web: Client, boss: User, queue: Queue) -> None:
    pause_queue(queue, boss, "cooling works")
    page = web.get("/fleet/queues/default/").content.decode()
    assert "Paused by boss." in page
    assert "cooling works" in page


def test_staff_take_a_device_out_of_service_and_release_it(boss: User, db: None) -> None:
    staff, device = browser_of(boss), make_worker("pit-01").devices.get()
    page = staff.post(f"/fleet/devices/{device.pk}/quarantine/", {"reason": "loud fan"}, follow=True).content.decode()
    assert "Nothing more starts on cpu:0 of pit-01." in page
    assert "loud fan" in page
    staff.post(f"/fleet/devices/{device.pk}/release/")
    device.refresh_from_db()
    assert device.is_in_service
    refused = staff.post(f"/fleet/devices/{device.pk}/quarantine/", {"reason": " "}, follow=True).content.decode()
    assert "Say why the device is taken out of service." in refused


def test_a_lease_that_nobody_ends_is_released_by_hand(boss: User, alice: User, queue: Queue) -> None:
    worker = make_worker()
    lose_attempt(start(make_job(alice), worker), "silent", release_devices=False)
    staff, device = browser_of(boss), worker.devices.get()
    assert f'id="release-{device.pk}"' in staff.get("/fleet/").content.decode()
    staff.post(f"/fleet/devices/{device.pk}/release/", {"reason": "host is gone"})
    assert Device.objects.get().attempt is None


def test_the_fleets_page_shows_what_devices_are_busy_with(boss: User, db: None) -> None:
    worker = make_worker("apex", num_gpus=1)
    gpu = worker.devices.get(kind="cuda")
    sample = DeviceSample(utilization_percent=93, memory_used_bytes=40 * 2**30, temperature_c=61, power_w=412)
    record_samples({gpu.pk: sample})
    page = browser_of(boss).get("/fleet/").content.decode()
    for text in ("93 %", "40 / 80", "61 °C", "412 W"):
        assert text in page
    Worker.objects.update(heartbeat_at=timezone.now() - timedelta(hours=1))
    assert "93 %" not in browser_of(boss).get("/fleet/").content.decode(), "what a silent host said is no news"


def test_a_gpu_that_others_use_says_whose_it_is(boss: User, db: None) -> None:
    make_worker(num_gpus=1).devices.filter(kind="cuda").update(foreign_use="python (4312) of tom")
    assert "python (4312) of tom" in browser_of(boss).get("/fleet/").content.decode()
