"""Who did what, when and why: kept with the act itself, and never changed."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from jobs.models import AuditEntry, Job, Queue, User, Worker
from jobs.selectors.audit import history_of, page_of_entries, visible_entries
from jobs.services.cancel import request_cancel
from jobs.services.errors import NotPossible
from jobs.services.finish import lose_attempt
from jobs.services.queues import pause_queue, resume_queue
from jobs.services.workers import drain_worker, forget_worker, say_goodbye, undrain_worker
from tests.jobs.conftest import client_of
from tests.jobs.factories import make_ended_job, make_job, make_user, make_worker, start

pytestmark = pytest.mark.django_db


def trail() -> list[tuple[str, str, str]]:
    """Who, what and why, oldest first."""
    return [(entry.actor_name, entry.action, entry.reason) for entry in AuditEntry.objects.order_by("pk")]


def test_a_cancel_is_kept_with_who_and_why_and_only_the_first_one(alice: User) -> None:
    job = make_job(alice)
    start(job)
    request_cancel(job, alice, " wrong data ")
    request_cancel(job, make_user("bob"), "me too")
    assert trail() == [("alice", "cancel", "wrong data")]
    entry = AuditEntry.objects.get()
    assert (entry.job, entry.queue, entry.subject) == (job, job.queue, str(job))


def test_what_was_refused_leaves_no_trace(alice: User) -> None:
    with pytest.raises(NotPossible):
        request_cancel(make_ended_job(alice), alice, "late")
    assert trail() == []


def test_a_queue_is_paused_and_resumed(queue: Queue, alice: User) -> None:
    pause_queue(queue, alice, "cooling works")
    resume_queue(queue, alice)
    resume_queue(queue, alice)
    assert trail() == [("alice", "pause", "cooling works"), ("alice", "resume", "")]


def test_a_worker_is_drained_and_resumed_once_each(alice: User) -> None:
    worker = make_worker()
    for _ in range(2):
        drain_worker(worker, alice, "new driver")
    assert Worker.objects.get().is_draining
    for _ in range(2):
        undrain_worker(worker, alice)
    assert trail() == [("alice", "drain", "new driver"), ("alice", "undrain", "")]


def test_a_worker_that_is_heard_from_cannot_be_forgotten(alice: User) -> None:
    with pytest.raises(NotPossible, match="box is online"):
        forget_worker(make_worker(), alice)


def test_a_silent_worker_is_not_forgotten_while_its_job_counts_as_running(alice: User) -> None:
    worker, job = make_worker(), make_job()
    start(job, worker)
    Worker.objects.update(heartbeat_at=timezone.now() - timedelta(hours=1))
    with pytest.raises(NotPossible, match=f"Job {job.pk} still counts as running"):
        forget_worker(worker, alice)


def test_forgetting_frees_the_devices_and_the_host_returns_by_itself(alice: User) -> None:
    worker = make_worker()
    attempt = start(make_job(), worker)
    Worker.objects.update(heartbeat_at=timezone.now() - timedelta(hours=1))
    lose_attempt(attempt, "silent", release_devices=False)
    forget_worker(worker, alice, "burnt down")
    assert not worker.devices.exclude(attempt=None).exists()
    assert Worker.objects.get().forgotten_at
    assert trail() == [("alice", "forget", "burnt down")]
    make_worker()
    assert Worker.objects.get().forgotten_at is None


@pytest.mark.parametrize(
    "change",
    [
        lambda entry: entry.save(),
        lambda entry: entry.delete(),
        lambda _entry: AuditEntry.objects.update(reason="forged"),
        lambda _entry: AuditEntry.objects.all().delete(),
    ],
)
def test_an_entry_is_never_changed_or_removed(change: object, queue: Queue, alice: User) -> None:
    pause_queue(queue, alice, "why")
    entry = AuditEntry.objects.get()
    entry.reason = "forged"
    with pytest.raises(TypeError, match="never changed"):
        change(entry)  # type: ignore[operator]
    assert trail() == [("alice", "pause", "why")]


def test_the_trail_outlives_the_account_of_who_did_it(queue: Queue) -> None:
    gone = make_user("gone")
    resume = make_user("next")
    pause_queue(queue, gone, "why")
    resume_queue(queue, resume)
    gone.delete()
    assert trail()[0] == ("gone", "pause", "why")


def test_a_job_tells_its_history_in_words(alice: User) -> None:
    job = make_job(alice)
    request_cancel(job, alice, "enough")
    [line] = history_of(job)
    assert (line.entry.actor_name, line.text, line.entry.reason) == ("alice", "cancelled it", "enough")


def test_members_read_of_their_teams_jobs_and_staff_of_everything(
    alice: User, stranger: User, strangers_job: Job, queue: Queue
) -> None:
    request_cancel(strangers_job, stranger, "theirs")
    request_cancel(make_job(alice), alice, "mine")
    pause_queue(queue, make_user(is_staff=True), "pause")
    assert [entry.reason for entry in visible_entries(alice)] == ["mine"]
    assert [entry.reason for entry in visible_entries(make_user(is_staff=True))] == ["pause", "mine", "theirs"]


def test_pages_go_on_where_the_last_one_ended(queue: Queue, alice: User) -> None:
    for number in range(5):
        pause_queue(queue, alice, str(number))
    first = page_of_entries(AuditEntry.objects.all(), limit=2)
    second = page_of_entries(AuditEntry.objects.all(), first.older, limit=2)
    last = page_of_entries(AuditEntry.objects.all(), second.older, limit=2)
    reasons = [[line.entry.reason for line in page.lines] for page in (first, second, last)]
    assert reasons == [["4", "3"], ["2", "1"], ["0"]]
    assert last.older is None


def test_the_api_narrows_the_trail_down(alice: User, queue: Queue) -> None:
    job = make_job(alice)
    request_cancel(job, alice, "enough")
    pause_queue(queue, alice, "cooling")
    staff: Client = client_of(make_user(is_staff=True))

    def reasons(query: str) -> list[str]:
        return [entry["reason"] for entry in staff.get(f"/api/v1/audit?{query}").json()["entries"]]

    assert reasons("") == ["cooling", "enough"]
    assert reasons(f"job={job.pk}") == ["enough"]
    assert reasons("queue=default&action=pause") == ["cooling"]
    assert reasons("actor=nobody") == []
    page = staff.get("/api/v1/audit?limit=1").json()
    assert reasons(f"before={page['next_before']}") == ["enough"]
    assert staff.get("/api/v1/audit?action=dance").status_code == 422


def test_only_staff_pause_and_drain_by_the_api(api: Client, queue: Queue) -> None:
    worker = make_worker()
    staff = client_of(make_user(is_staff=True))
    calls = [("queues/default/pause", '{"reason": "x"}'), ("queues/default/resume", "{}")]
    calls += [(f"workers/{worker.pk}/{action}", "{}") for action in ("drain", "resume")]
    for path, body in calls:
        refused = api.post(f"/api/v1/{path}", body, content_type="application/json")
        assert (refused.status_code, refused.json()["errors"][0]["code"]) == (403, "not_allowed")
        assert staff.post(f"/api/v1/{path}", body, content_type="application/json").status_code == 200
    assert [action for _who, action, _why in trail()] == ["pause", "resume", "drain", "undrain"]


def test_the_api_forgets_a_dead_worker_and_says_so_of_a_living_one() -> None:
    worker, staff = make_worker(), client_of(make_user(is_staff=True))
    address = f"/api/v1/workers/{worker.pk}/forget"
    assert staff.post(address, "{}", content_type="application/json").status_code == 409
    say_goodbye(worker.pk)
    assert staff.post(address, "{}", content_type="application/json").status_code == 204
    assert staff.get("/api/v1/workers").json() == {"workers": []}
