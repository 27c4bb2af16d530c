"""Who gets which page."""

import pytest
from django.test import Client

from jobs.models import Job, User
from tests.web.conftest import browser_of

PAGES = ["/", "/jobs/new/", "/compare/", "/leaderboard/", "/account/", "/account/password/"]
JOB_PAGES = ["", "parts/", "points/", "log/"]


@pytest.mark.django_db
@pytest.mark.parametrize("path", [*PAGES, "/fleet/", "/live/?topics=jobs", "/jobs/1/"])
def test_a_visitor_is_sent_to_the_sign_in_page(path: str) -> None:
    response = Client().get(path)
    assert response.status_code == 302
    assert response.headers["Location"].startswith("/sign-in/?next=")


@pytest.mark.django_db
def test_a_part_asked_for_after_the_session_ended_reloads_the_page() -> None:
    response = Client().get("/", headers={"HX-Request": "true"})
    assert response.status_code == 401
    assert response.headers["HX-Refresh"] == "true"


@pytest.mark.parametrize("path", PAGES)
def test_a_member_sees_every_page(web: Client, path: str) -> None:
    assert web.get(path).status_code == 200


@pytest.mark.parametrize("path", JOB_PAGES)
def test_a_job_is_seen_by_its_team_and_staff_and_by_nobody_else(
    job: Job, bob: User, stranger: User, boss: User, path: str
) -> None:
    address = f"/jobs/{job.pk}/{path}"
    assert browser_of(bob).get(address).status_code == 200
    assert browser_of(boss).get(address).status_code == 200
    assert browser_of(stranger).get(address).status_code == 404


def test_a_stranger_cannot_cancel_or_clone_a_job(job: Job, stranger: User) -> None:
    assert browser_of(stranger).post(f"/jobs/{job.pk}/cancel/").status_code == 404
    assert browser_of(stranger).get(f"/jobs/new/?from={job.pk}").status_code == 404
    job.refresh_from_db()
    assert job.state == "queued"


def test_the_fleet_is_for_staff_and_says_so(web: Client, boss: User) -> None:
    refused = web.get("/fleet/")
    assert refused.status_code == 403
    assert "This page is for staff" in refused.content.decode()
    assert browser_of(boss).get("/fleet/").status_code == 200


def test_a_member_cannot_pause_a_queue(web: Client, job: Job) -> None:
    assert web.post("/fleet/queues/default/pause/", {"reason": "mine"}).status_code == 403
    job.queue.refresh_from_db()
    assert not job.queue.is_paused


def test_staff_open_the_administration(boss: User, web: Client) -> None:
    boss.is_superuser = True
    boss.save()
    staff = browser_of(boss)
    names = ("job", "queue", "user", "attempt", "attemptnode", "study", "workload", "worker", "device")
    for path in ("/admin/", *(f"/admin/jobs/{name}/" for name in names)):
        assert staff.get(path).status_code == 200, path
    assert web.get("/admin/", follow=True).status_code == 403


def test_the_administration_names_failed_sign_ins_in_plain_words(boss: User) -> None:
    boss.is_superuser = True
    boss.save()
    page = browser_of(boss).get("/admin/axes/accessattempt/").content.decode()
    assert "Sign-in attempts" in page
    assert "Axes" not in page


def test_only_the_administration_may_evaluate_scripts(boss: User) -> None:
    policies = {path: browser_of(boss).get(path).headers["Content-Security-Policy"] for path in ("/admin/", "/fleet/")}
    assert "script-src 'self' 'unsafe-eval';" in policies["/admin/"] + ";"
    assert "unsafe-eval" not in policies["/fleet/"]


def test_the_administration_has_no_sign_in_page_of_its_own(db: None) -> None:
    response = Client().get("/admin/", follow=True)
    assert response.redirect_chain[-1][0] == "/sign-in/?next=/admin/"


def test_the_administration_cannot_write_a_jobs_state(job: Job, boss: User) -> None:
    boss.is_superuser = True
    boss.save()
    page = browser_of(boss).get(f"/admin/jobs/job/{job.pk}/change/").content.decode()
    assert 'name="state"' not in page


def test_an_unknown_address_has_a_page_in_words(web: Client) -> None:
    response = web.get("/nowhere/")
    assert response.status_code == 404
    assert "There is nothing at this address" in response.content.decode()


def test_every_page_forbids_scripts_from_elsewhere(web: Client) -> None:
    policy = web.get("/").headers["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "unsafe-eval" not in policy


@pytest.mark.parametrize(
    "path", ["/fleet/queues/default/pause/", "/jobs/1/cancel/", "/account/tokens/", "/jobs/check/"]
)
def test_what_writes_is_not_reached_by_a_link(boss: User, path: str) -> None:
    assert browser_of(boss).get(path).status_code == 405
