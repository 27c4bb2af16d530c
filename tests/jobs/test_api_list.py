from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from jobs.models import Job, User
from jobs.models.figures import RANKED_METRICS
from tests.jobs.factories import make_ended_job, make_job, make_spec


def listed(api: Client, query: str = "") -> list[int]:
    response = api.get(f"/api/v1/jobs{query}")
    assert response.status_code == 200, response.content
    return [job["id"] for job in response.json()["jobs"]]


def all_pages(api: Client, query: str) -> list[list[int]]:
    pages: list[list[int]] = []
    cursor = ""
    while len(pages) < 50:
        body = api.get(f"/api/v1/jobs?{query}{cursor and '&cursor=' + cursor}").json()
        pages.append([job["id"] for job in body["jobs"]])
        cursor = body["next_cursor"]
        if cursor is None:
            break
    return pages


def test_the_newest_comes_first(api: Client, alice: User) -> None:
    jobs = [make_job(alice).pk for _number in range(3)]
    assert listed(api) == list(reversed(jobs))


def test_only_the_jobs_of_ones_teams_are_listed(api: Client, alice: User, strangers_job: Job) -> None:
    mine = make_job(alice)
    assert listed(api) == [mine.pk]


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("model=mlp&dataset=digits", {"model": "mlp", "dataset": "digits"}),
        ("precision=bf16-mixed", {"precision": "bf16-mixed"}),
        ("micro_batch_size=7", {"micro_batch_size": 7}),
        ("learning_rate=0.25", {"learning_rate": 0.25}),
        ("pin_memory=true", {"pin_memory": True, "device": "cuda", "data_loading": "dataloader"}),
        ("num_epochs=3", {"num_epochs": 3, "num_steps": None}),
        ("seed=9", {"seed": 9}),
    ],
)
def test_any_field_of_a_spec_filters(api: Client, alice: User, query: str, values: dict[str, Any]) -> None:
    make_job(alice)
    wanted = make_job(alice, spec=make_spec(**values))
    assert listed(api, f"?{query}") == [wanted.pk]


def test_the_default_value_filters_too(api: Client, alice: User) -> None:
    plain = make_job(alice)
    make_job(alice, spec=make_spec(persistent_workers=True, seed=1))
    assert listed(api, "?persistent_workers=false&seed=0") == [plain.pk]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("q=model:mlp", {"fast"}),
        ("q=step_time_ms<5&outcome=succeeded", {"fast"}),
        ("tag=night", {"slow"}),
        ("owner=me", {"fast", "slow"}),
        ("owner=nobody", set()),
        ("team=Pit+crew&queue=default", {"fast", "slow"}),
        ("team=Rivals", set()),
        ("device_name=Fast+CPU", {"fast", "slow"}),
        ("created_after=2020-01-01T00:00:00Z", {"fast", "slow"}),
        ("created_before=2020-01-01", set()),
        ("origin=imported", set()),
    ],
)
def test_more_than_the_spec_filters(api: Client, alice: User, query: str, expected: set[str]) -> None:
    jobs = {
        "fast": make_ended_job(
            alice, spec=make_spec(model="mlp", dataset="digits"), summary={"steady_step_time_ms": 2.0}
        ),
        "slow": make_ended_job(alice, summary={"steady_step_time_ms": 20.0}),
    }
    jobs["slow"].tags.create(name="night")
    assert {name for name, job in jobs.items() if job.pk in listed(api, f"?{query}")} == expected


def test_the_count_comes_along(api: Client, alice: User) -> None:
    make_job(alice), make_job(alice)
    assert api.get("/api/v1/jobs?limit=1").json()["count"] == 2


def test_state_filters(api: Client, alice: User) -> None:
    ended, queued = make_ended_job(alice), make_job(alice)
    assert listed(api, "?state=succeeded") == [ended.pk]
    assert listed(api, "?state=queued") == [queued.pk]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("colour=red", "colour"),
        ("q=colour:red", "q"),
        ("outcome=fine", "outcome"),
        ("origin=mars", "origin"),
        ("created_after=yesterday", "created_after"),
        ("state=asleep", "state"),
        ("precision=fp7", "precision"),
        ("seed=first", "seed"),
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("limit=ten", "limit"),
        ("order_by=colour", "order_by"),
        ("order_by=team__name", "order_by"),
        ("cursor=nonsense", "cursor"),
        ("cursor=bnVsbA", "cursor"),
        ("cursor=WzEsMl0", "cursor"),
        ("cursor=%C3%A9", "cursor"),
        ("model=a%00b", "model"),
    ],
)
def test_a_wrong_parameter_is_named(api: Client, query: str, field: str) -> None:
    response = api.get(f"/api/v1/jobs?{query}")
    assert response.status_code == 422
    assert [error["field"] for error in response.json()["errors"]] == [field]


@pytest.mark.parametrize("order_by", ["id", "-id"])
def test_pages_hold_each_job_once(api: Client, alice: User, order_by: str) -> None:
    jobs = sorted((make_job(alice).pk for _number in range(7)), reverse=order_by == "-id")
    assert all_pages(api, f"limit=3&order_by={order_by}") == [jobs[:3], jobs[3:6], jobs[6:]]


@pytest.mark.parametrize(
    "order_by",
    [sign + name for sign in ("", "-") for name in ("steady_step_time_ms", "name", "created_at", "state")],
)
def test_pages_by_any_column_hold_each_job_once_with_ties_and_gaps(api: Client, alice: User, order_by: str) -> None:
    for step_time_ms in (5.0, 3.0, 5.0, None, 4.0):
        make_ended_job(alice, summary={"steady_step_time_ms": step_time_ms}, name="same")
    jobs = [make_job(alice, name=name).pk for name in ("b", "a")]
    everything = listed(api, f"?order_by={order_by}")
    assert len(everything) == 7
    assert set(jobs) < set(everything)
    for limit in (1, 2, 3):
        pages = all_pages(api, f"limit={limit}&order_by={order_by}")
        assert [number for page in pages for number in page] == everything


def test_jobs_without_a_value_come_last(api: Client, alice: User) -> None:
    queued = make_job(alice)
    slow, fast = (make_ended_job(alice, summary={"steady_step_time_ms": value}).pk for value in (9.0, 1.0))
    assert listed(api, "?order_by=steady_step_time_ms") == [fast, slow, queued.pk]
    assert listed(api, "?order_by=-steady_step_time_ms") == [slow, fast, queued.pk]


def test_every_ranked_figure_orders(api: Client, alice: User) -> None:
    make_ended_job(alice)
    for name in RANKED_METRICS:
        assert len(listed(api, f"?order_by=-{name}")) == 1


def test_a_job_that_arrives_meanwhile_does_not_shift_the_pages(api: Client, alice: User) -> None:
    jobs = [make_job(alice).pk for _number in range(4)]
    first = api.get("/api/v1/jobs?limit=2").json()
    make_job(alice)
    second = api.get(f"/api/v1/jobs?limit=2&cursor={first['next_cursor']}").json()
    assert [job["id"] for job in second["jobs"]] == [jobs[1], jobs[0]]


def test_a_cursor_belongs_to_its_order(api: Client, alice: User) -> None:
    make_job(alice), make_job(alice)
    cursor = api.get("/api/v1/jobs?limit=1").json()["next_cursor"]
    response = api.get(f"/api/v1/jobs?limit=1&order_by=name&cursor={cursor}")
    assert response.json()["errors"][0]["field"] == "cursor"


def test_a_page_is_a_constant_number_of_queries(api: Client, alice: User, django_assert_num_queries: Any) -> None:
    for number in range(6):
        make_ended_job(alice, queued_at=timezone.now() - timedelta(minutes=number))
    api.get("/api/v1/jobs")
    with django_assert_num_queries(7):  # the token, teams, how many, which, in which order, the jobs, their tags
        api.get("/api/v1/jobs")
