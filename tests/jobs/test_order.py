"""The order of a line: staff put a job anywhere, everybody else reorders their own, and nobody waits longer for it."""

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.models import AuditEntry, Job, Queue, User
from jobs.selectors.line import place_of, waiting_in
from jobs.services.cancel import request_cancel
from jobs.services.claim import claim_next
from jobs.services.errors import NotPossible
from jobs.services.order import move_to_end, move_to_front, place_job
from tests.jobs.factories import make_job, make_queue, make_user, make_worker, start

pytestmark = pytest.mark.django_db


@pytest.fixture
def boss(db: None) -> User:
    return make_user("boss", is_staff=True)


def make_line(owner: User, count: int, **values: object) -> list[Job]:
    """Jobs that were queued one second after the other."""
    began = timezone.now() - timedelta(hours=1)
    return [make_job(owner, queued_at=began + timedelta(seconds=number), **values) for number in range(count)]


def line(queue: Queue | None = None) -> list[int]:
    return [job.pk for job in waiting_in((queue or Queue.objects.get(name="default")).pk)]


def test_staff_put_a_job_between_two_others(alice: User, boss: User) -> None:
    first, second, third, fourth = make_line(alice, 4)
    place_job(fourth, boss, first.pk, "needed today")
    assert line() == [first.pk, fourth.pk, second.pk, third.pk]
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.reason, entry.detail) == ("reorder", "needed today", {"before": 4, "after": 2})


def test_the_claim_follows_the_order_that_was_made(alice: User, boss: User) -> None:
    first, _second, third = make_line(alice, 3)
    move_to_front(third, boss)
    move_to_end(first, boss)
    taken = claim_next(make_worker().pk)
    assert taken
    assert taken.job_id == third.pk


def test_to_the_front_and_to_the_end(alice: User, boss: User) -> None:
    first, second, third = make_line(alice, 3)
    move_to_front(third, boss)
    assert line() == [third.pk, first.pk, second.pk]
    move_to_end(third, boss)
    assert line() == [first.pk, second.pk, third.pk]


def test_the_same_place_again_changes_nothing_and_is_not_noted(alice: User, boss: User) -> None:
    first, second, third = make_line(alice, 3)
    move_to_front(first, boss)
    move_to_end(third, boss)
    place_job(second, boss, first.pk)
    assert line() == [first.pk, second.pk, third.pk]
    assert not AuditEntry.objects.exists()


def test_a_job_takes_the_priority_of_its_new_place_and_no_other(alice: User, boss: User) -> None:
    [high] = make_line(alice, 1, priority=5)
    middle, low = make_line(alice, 2)
    place_job(low, boss, high.pk)
    low.refresh_from_db()
    assert (line(), low.priority) == ([high.pk, low.pk, middle.pk], 0)
    move_to_front(low, boss)
    low.refresh_from_db()
    assert (line(), low.priority) == ([low.pk, high.pk, middle.pk], 5)
    move_to_end(low, boss)
    low.refresh_from_db()
    assert (line(), low.priority) == ([high.pk, middle.pk, low.pk], 0)


def test_the_same_gap_can_be_halved_a_hundred_times(alice: User, boss: User) -> None:
    first, *others = make_line(alice, 6)
    expected = [job.pk for job in others]
    for number in range(100):
        job = others[number % 5]
        place_job(job, boss, first.pk)
        expected.remove(job.pk)
        expected.insert(0, job.pk)
        assert line() == [first.pk, *expected]


def test_jobs_of_the_same_instant_are_told_apart(alice: User, boss: User) -> None:
    now = timezone.now()
    first, second, third, fourth = [make_job(alice, queued_at=now) for _ in range(4)]
    place_job(fourth, boss, first.pk)
    assert line() == [first.pk, fourth.pk, second.pk, third.pk]


def test_other_queues_keep_their_order(alice: User, boss: User) -> None:
    other = make_queue("other")
    theirs = make_line(alice, 2, queue=other)
    _first, second = make_line(alice, 2)
    move_to_front(second, boss)
    assert line(other) == [job.pk for job in theirs]


def test_owners_reorder_their_own_jobs_within_the_places_that_they_have(alice: User) -> None:
    stranger = make_user("stranger")
    began = timezone.now() - timedelta(hours=1)
    owners = [alice, stranger, alice, stranger, alice]
    a1, s1, a2, s2, a3 = [
        make_job(owner, queued_at=began + timedelta(seconds=number)) for number, owner in enumerate(owners)
    ]
    move_to_front(a3, alice)
    assert line() == [a3.pk, s1.pk, a1.pk, s2.pk, a2.pk]
    place_job(a3, alice, s2.pk)
    assert line() == [a1.pk, s1.pk, a3.pk, s2.pk, a2.pk]
    move_to_end(a1, alice)
    assert line() == [a3.pk, s1.pk, a2.pk, s2.pk, a1.pk]


def test_what_has_started_cannot_be_moved(alice: User, boss: User) -> None:
    job = make_job(alice)
    start(job)
    with pytest.raises(NotPossible, match=f"Job {job.pk} has already started"):
        move_to_front(job, boss)


def test_behind_a_job_that_waits_no_more_nothing_is_moved(alice: User, boss: User) -> None:
    first, second, third = make_line(alice, 3)
    request_cancel(first, alice)
    with pytest.raises(NotPossible, match="does not wait in the queue"):
        place_job(third, boss, first.pk)
    assert line() == [second.pk, third.pk]


def test_places_are_counted_from_one(alice: User) -> None:
    jobs = make_line(alice, 3)
    assert [place_of(job) for job in jobs] == [1, 2, 3]
