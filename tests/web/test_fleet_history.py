"""What staff do to the fleet by its pages, and the page that remembers it."""

from django.test import Client

from jobs.models import AuditEntry, Job, User, Worker
from jobs.services.cancel import request_cancel
from jobs.services.workers import say_goodbye
from tests.jobs.factories import make_worker
from tests.web.conftest import browser_of


def test_staff_drain_resume_and_forget_a_worker_with_a_reason(boss: User) -> None:
    staff, worker = browser_of(boss), make_worker("pit-01")
    page = staff.post(f"/fleet/workers/{worker.pk}/drain/", {"reason": "new driver"}, follow=True).content.decode()
    assert "pit-01 takes no new jobs." in page
    assert "Draining" in page
    page = staff.post(f"/fleet/workers/{worker.pk}/forget/", follow=True).content.decode()
    assert "pit-01 is online. Drain it and stop it first." in page
    staff.post(f"/fleet/workers/{worker.pk}/resume/")
    say_goodbye(worker.pk)
    staff.post(f"/fleet/workers/{worker.pk}/forget/", {"reason": "sold"})
    assert "pit-01" not in browser_of(boss).get("/fleet/").content.decode()
    actions = [(entry.action, entry.reason) for entry in AuditEntry.objects.order_by("pk")]
    assert actions == [("drain", "new driver"), ("undrain", ""), ("forget", "sold")]


def test_a_member_drains_nothing(web: Client) -> None:
    worker = make_worker()
    assert web.post(f"/fleet/workers/{worker.pk}/drain/").status_code == 403
    assert not Worker.objects.get().is_draining


def test_what_staff_cannot_do_is_not_there(boss: User) -> None:
    worker = make_worker()
    assert browser_of(boss).post(f"/fleet/workers/{worker.pk}/explode/").status_code == 404


def test_a_form_leads_back_to_its_own_page_and_never_to_another_site(boss: User) -> None:
    staff, worker = browser_of(boss), make_worker()
    address = f"/fleet/workers/{worker.pk}/drain/"
    assert staff.post(address, {"next": "/fleet/history/"}).headers["Location"] == "/fleet/history/"
    for elsewhere in ("https://evil.example/", "//evil.example", "javascript:alert(1)", ""):
        assert staff.post(address, {"next": elsewhere}).headers["Location"] == "/fleet/"


def test_the_history_is_searched_by_person_job_and_action(boss: User, job: Job, alice: User) -> None:
    request_cancel(job, alice, "wrong <b>data</b>")
    staff = browser_of(boss)
    staff.post(f"/fleet/workers/{make_worker('pit-01').pk}/drain/", {"reason": "new driver"})

    def reasons(query: str) -> list[str]:
        return [line.entry.reason for line in staff.get(f"/fleet/history/{query}").context["page"].lines]

    assert reasons("") == ["new driver", "wrong <b>data</b>"]
    assert reasons("?q=alice") == reasons(f"?q=%23{job.pk}") == reasons("?action=cancel") == ["wrong <b>data</b>"]
    assert reasons("?q=pit-01") == ["new driver"]
    assert reasons("?q=nobody&action=nonsense&before=x") == []
    assert "<b>data</b>" not in staff.get("/fleet/history/").content.decode()


def test_the_history_is_for_staff(web: Client) -> None:
    assert web.get("/fleet/history/").status_code == 403


def test_the_jobs_page_tells_its_history(web: Client, job: Job, alice: User) -> None:
    request_cancel(job, alice, "wrong data")
    page = web.get(f"/jobs/{job.pk}/").content.decode()
    assert 'id="job-history"' in page
    assert "<b>alice</b> cancelled it<q>wrong data</q>" in page
