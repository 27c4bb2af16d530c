"""The list: what it shows, how it is narrowed down, how it goes on."""

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from jobs.contract.states import Outcome
from jobs.models import Job, User
from jobs.services.finish import finish_attempt
from jobs.views.job_list import PAGE_SIZE
from tests.jobs.factories import make_job, make_spec, points, record, start


def ids_of(client: Client, query: str = "") -> list[int]:
    return [row.job.pk for row in client.get(f"/{query}").context["page"].rows]


def test_an_empty_list_invites(web: Client) -> None:
    assert "Submit the first job" in web.get("/").content.decode()


def test_a_filter_that_matches_nothing_offers_a_reset(web: Client, job: Job) -> None:
    page = web.get("/?q=nothing-like-this").content.decode()
    assert "Nothing matches" in page
    assert "Show all jobs" in page


def test_other_teams_jobs_are_not_listed(web: Client, job: Job, stranger: User) -> None:
    make_job(stranger)
    assert ids_of(web) == [job.pk]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?q=Baseline", ["first"]),
        ("?q=conv", ["second"]),
        ("?model=convnet", ["second"]),
        ("?owner=me", ["first"]),
        ("?state=queued", ["second", "first"]),
        ("?state=ended", []),
        ("?state=nonsense&before=nonsense", ["second", "first"]),
        ("?q=%00", ["second", "first"]),
    ],
)
def test_filters_narrow_the_list(web: Client, alice: User, bob: User, query: str, expected: list[str]) -> None:
    jobs = {
        "first": make_job(alice, name="baseline"),
        "second": make_job(bob, spec=make_spec(model="convnet", dataset="digits")),
    }
    assert ids_of(web, query) == [jobs[name].pk for name in expected]


def test_a_job_is_found_by_its_number(web: Client, alice: User) -> None:
    job, _other = make_job(alice), make_job(alice)
    assert job.pk in ids_of(web, f"?q=%23{job.pk}")


def test_pages_follow_each_other_without_gap_or_double_and_keep_the_filter(web: Client, alice: User) -> None:
    made = [make_job(alice).pk for _ in range(PAGE_SIZE + 3)]
    first = web.get("/?owner=me")
    assert f"?owner=me&amp;before={first.context['page'].older}" in first.content.decode()
    rest = ids_of(web, f"?owner=me&before={first.context['page'].older}")
    assert [row.job.pk for row in first.context["page"].rows] + rest == made[::-1]


def test_only_what_differs_from_the_defaults_stands_in_the_line(web: Client, alice: User) -> None:
    make_job(alice, spec=make_spec(precision="bf16-mixed"))
    chips = {chip.name: chip.value for chip in web.get("/").context["page"].rows[0].chips}
    assert chips == {"precision": "bf16-mixed", "num_steps": 100}


def test_what_runs_stands_on_track_before_what_has_finished(web: Client, alice: User) -> None:
    done = make_job(alice)
    attempt = start(done)
    record(attempt, points([1, 2], train_loss=[3.0, 2.0]))
    finish_attempt(attempt, Outcome.SUCCEEDED)
    running = make_job(alice)
    start(running)
    make_job(alice)
    assert [card.job.pk for card in web.get("/").context["cards"]] == [running.pk, done.pk]


def test_htmx_gets_the_living_part_only(web: Client, job: Job) -> None:
    page = web.get("/", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in page
    assert f'data-job="{job.pk}"' in page
    assert 'id="on-track" hx-swap-oob' in page


def test_a_long_list_costs_no_more_queries_than_a_short_one(
    web: Client, alice: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(30):
        make_job(alice)
    with django_assert_max_num_queries(10):
        web.get("/")
