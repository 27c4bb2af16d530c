"""What people do to jobs from the pages: with a reason, in bulk, too late, and with a way back."""

import json

import pytest
from django.test import Client

from jobs.contract.states import Outcome
from jobs.models import AuditEntry, Job, User
from jobs.selectors.line import waiting_in
from jobs.services.finish import finish_attempt
from tests.jobs.factories import make_job, make_queue, start
from tests.web.conftest import browser_of


def act(client: Client, act: str, *jobs: Job, **values: object) -> str:
    """The page that comes back."""
    data = {"act": act, "jobs": ",".join(str(job.pk) for job in jobs)} | values
    return client.post("/jobs/act/", data, follow=True).content.decode()


def test_ticked_jobs_are_cancelled_with_one_reason_and_can_be_queued_again(web: Client, alice: User) -> None:
    first, second = make_job(alice), make_job(alice)
    page = act(web, "cancel", first, second, reason="wrong data")
    assert "2 jobs are cancelled." in page
    assert set(Job.objects.values_list("state", "cancel_reason")) == {("cancelled", "wrong data")}
    assert f'name="jobs" value="{first.pk},{second.pk}"' in page, "the toast holds the way back"
    page = act(web, "requeue", first, second)
    assert "2 jobs wait again." in page
    assert set(Job.objects.values_list("state", flat=True)) == {"queued"}


def test_what_has_ended_meanwhile_is_told_and_the_others_are_done(web: Client, alice: User) -> None:
    late, waiting = make_job(alice), make_job(alice)
    finish_attempt(start(late), Outcome.SUCCEEDED)
    page = act(web, "cancel", late, waiting)
    assert f"Job #{waiting.pk} is cancelled." in page
    assert f"Job {late.pk} has already ended." in page


def test_a_second_click_is_answered_with_a_sentence(web: Client, job: Job) -> None:
    act(web, "cancel", job)
    assert f"Job {job.pk} has already ended." in act(web, "cancel", job)
    assert AuditEntry.objects.count() == 1


def test_many_that_are_too_late_do_not_fill_the_page(web: Client, alice: User) -> None:
    jobs = [make_job(alice) for _ in range(6)]
    act(web, "cancel", *jobs)
    page = act(web, "cancel", *jobs)
    assert page.count("has already ended.") == 3
    assert "And 3 more were left as they were." in page


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"act": "priority"}, "This field is required."),
        ({"act": "move", "queue": "nowhere"}, "Select a valid choice."),
        ({"act": "explode"}, "is not one of the available choices"),
        ({"act": "cancel", "jobs": ""}, "This field is required."),
        ({"act": "cancel", "jobs": "1,x"}, "Tick the jobs first."),
    ],
)
def test_a_form_that_lacks_something_does_nothing_and_says_what(
    web: Client, job: Job, values: dict[str, str], sentence: str
) -> None:
    page = web.post("/jobs/act/", {"jobs": str(job.pk)} | values, follow=True).content.decode()
    assert sentence in page
    assert not AuditEntry.objects.exists()


def test_a_job_is_moved_given_a_priority_and_a_limit_from_its_page(web: Client, job: Job) -> None:
    make_queue("night")
    address = f"/jobs/{job.pk}/"
    page = web.get(address).content.decode()
    assert f'data-act="priority" data-value="0" data-jobs="{job.pk}"' in page
    act(web, "priority", job, priority="-2", next=address)
    act(web, "move", job, queue="night", next=address)
    act(web, "time_limit", job, time_limit_s="90", next=address)
    page = web.get(address).content.decode()
    for sentence in (
        "changed the priority from 0 to -2",
        "moved it from the queue “default” to “night”",
        "changed the time limit from none to 90",
    ):
        assert sentence in page
    job.refresh_from_db()
    assert (job.priority, job.queue.name, job.spec["time_limit_s"]) == (-2, "night", 90)


def test_staff_move_jobs_in_the_line(boss: User, alice: User) -> None:
    jobs = [make_job(alice) for _ in range(3)]
    act(browser_of(boss), "first", jobs[2])
    act(browser_of(boss), "place", jobs[0], after=jobs[1].pk)
    assert [job.pk for job in waiting_in(jobs[0].queue_id)] == [jobs[2].pk, jobs[1].pk, jobs[0].pk]


def test_a_team_mate_sees_no_button_that_would_be_refused(job: Job, bob: User) -> None:
    page = browser_of(bob).get(f"/jobs/{job.pk}/").content.decode()
    assert 'id="cancel"' not in page
    assert 'data-act="priority"' not in page
    assert 'id="clone"' in page


@pytest.mark.parametrize("name", ["cancel", "priority", "first", "time_limit"])
def test_a_team_mate_is_refused_in_words(job: Job, bob: User, name: str) -> None:
    assert f"Job {job.pk} is not yours." in act(browser_of(bob), name, job, priority="-1")
    assert "is not yours" in browser_of(bob).post(f"/jobs/{job.pk}/cancel/", follow=True).content.decode()
    job.refresh_from_db()
    assert (job.state, job.priority) == ("queued", 0)


def test_a_stranger_learns_nothing_of_a_job(job: Job, stranger: User) -> None:
    assert f"There is no job {job.pk}." in act(browser_of(stranger), "cancel", job)
    job.refresh_from_db()
    assert job.state == "queued"


def test_the_way_back_leads_to_the_same_page(web: Client, job: Job) -> None:
    web.post("/jobs/act/", {"act": "cancel", "jobs": str(job.pk), "next": "/?state=open"})
    [message] = list(web.get("/").context["messages"])
    undo = json.loads(message.extra_tags)
    assert undo == {"url": "/jobs/act/", "fields": {"act": "requeue", "jobs": str(job.pk), "next": "/?state=open"}}
