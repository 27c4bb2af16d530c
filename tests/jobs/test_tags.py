"""Tags: put on by owner and staff, copied along, and told in the audit trail."""

from typing import Any

import pytest
from django.test import Client

from jobs.models import AuditEntry, Job, JobTag, User
from jobs.selectors.audit import history_of
from jobs.services.actions import Act, Order, perform, perform_all
from jobs.services.clone import clone_job
from jobs.services.errors import NotAllowed, NotPossible
from jobs.services.tags import MOST_TAGS
from tests.jobs.conftest import client_of
from tests.jobs.factories import make_ended_job, make_job, make_user


def tags_of(job: Job) -> list[str]:
    return list(job.tags.values_list("name", flat=True))


def test_tags_are_put_on_and_taken_off_whatever_the_state_and_noted(alice: User) -> None:
    job = make_ended_job(alice)
    perform(alice, job, Order(Act.TAG, tags=("night run", " base ", "base")))
    perform(alice, job, Order(Act.UNTAG, "done", tags=("base", "unknown")))
    assert tags_of(job) == ["night run"]
    newest, first = history_of(job)
    assert first.text == "changed the tags from none to base, night run"
    assert (newest.text, newest.entry.reason) == ("changed the tags from base, night run to night run", "done")


def test_what_changes_nothing_is_not_noted(alice: User) -> None:
    job = make_job(alice)
    for _ in range(2):
        perform(alice, job, Order(Act.TAG, tags=("base",)))
    assert AuditEntry.objects.count() == 1


@pytest.mark.parametrize("who", ["mate", "staff"])
def test_owner_and_staff_tag(alice: User, who: str) -> None:
    job = make_job(alice)
    person = make_user(team=alice.teams.get(), is_staff=who == "staff")
    if who == "staff":
        perform(person, job, Order(Act.TAG, tags=("x",)))
    else:
        with pytest.raises(NotAllowed):
            perform(person, job, Order(Act.TAG, tags=("x",)))
    assert tags_of(job) == (["x"] if who == "staff" else [])


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["x" * 51], "A tag has at most 50 characters."),
        (["a,b"], "A tag has no commas and no quotation marks."),
        (['a"b'], "A tag has no commas and no quotation marks."),
        ([str(number) for number in range(MOST_TAGS + 1)], "A job has at most 20 tags."),
    ],
)
def test_a_bad_tag_is_refused_in_words(alice: User, names: list[str], sentence: str) -> None:
    with pytest.raises(NotPossible, match=sentence):
        perform(alice, make_job(alice), Order(Act.TAG, tags=tuple(names)))
    assert not JobTag.objects.exists()


def test_many_are_tagged_at_once(alice: User, stranger: User) -> None:
    jobs = [make_job(alice), make_job(alice), make_job(stranger)]
    results = perform_all(alice, [job.pk for job in jobs], Order(Act.TAG, tags=("study",)))
    assert [bool(result.error) for result in results] == [False, False, True]
    assert JobTag.objects.count() == 2


def test_a_menu_offers_the_tags_that_jobs_of_the_team_have_and_no_others(alice: User, stranger: User) -> None:
    first, second = make_job(alice), make_job(alice)
    perform(alice, first, Order(Act.TAG, tags=("base", "night run", "old")))
    perform(alice, second, Order(Act.TAG, tags=("base",)))
    perform(stranger, make_job(stranger), Order(Act.TAG, tags=("theirs",)))
    perform(alice, first, Order(Act.UNTAG, tags=("base", "old")))
    web = Client()
    web.force_login(alice)
    choices = web.get("/jobs/menu/tag/").context["choices"]
    assert [choice.text for choice in choices] == ["base", "night run"]


def test_a_copy_has_them_too(alice: User) -> None:
    job = make_job(alice)
    perform(alice, job, Order(Act.TAG, tags=("study",)))
    assert tags_of(clone_job(job, alice)) == ["study"]


def test_the_api_submits_shows_and_replaces_them(api: Client, alice: User) -> None:
    spec: dict[str, Any] = {"num_steps": 10}
    made = api.post("/api/v1/jobs?tags=b,%20a,a", spec, content_type="application/json").json()
    assert made["tags"] == ["a", "b"]
    address = f"/api/v1/jobs/{made['id']}"
    assert api.patch(address, {"tags": ["c"]}, content_type="application/json").json()["tags"] == ["c"]
    assert api.get("/api/v1/jobs?tag=c").json()["jobs"][0]["tags"] == ["c"]
    body = {"act": "tag", "jobs": [made["id"]], "tags": ["d"]}
    assert api.post("/api/v1/jobs/bulk", body, content_type="application/json").json()["results"][0]["error"] == ""
    assert tags_of(Job.objects.get(pk=made["id"])) == ["c", "d"]


def test_the_api_refuses_a_bad_one_by_name(api: Client, alice: User) -> None:
    response = api.post(f"/api/v1/jobs?tags={'x' * 51}", {"num_steps": 10}, content_type="application/json")
    assert response.json()["errors"][0]["field"] == "tags"
    assert not Job.objects.exists()


def test_a_stranger_changes_nothing(alice: User, stranger: User) -> None:
    job = make_job(alice)
    response = client_of(stranger).patch(f"/api/v1/jobs/{job.pk}", {"tags": ["x"]}, content_type="application/json")
    assert response.status_code == 404
    assert tags_of(job) == []
