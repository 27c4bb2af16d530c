from typing import Any

import plotly.graph_objects as go
import pytest
from django.test import Client

from jobs.api.curves import MAX_COMPARED
from jobs.models import Job, User
from tests.jobs.factories import make_ended_job, make_job, make_spec, points, record, start


@pytest.fixture
def long_job(alice: User) -> Job:
    job = make_job(alice)
    steps = range(1, 3001)
    record(start(job), points(steps, train_loss=[1 / step for step in steps]))
    return job


def get(api: Client, address: str) -> Any:
    response = api.get(f"/api/v1/{address}")
    assert response.status_code == 200, response.content
    return response.json()


def fields_refused(api: Client, address: str) -> list[str]:
    response = api.get(f"/api/v1/{address}")
    assert response.status_code == 422, response.content
    return [error["field"] for error in response.json()["errors"]]


def test_a_curve_comes_in_lists_of_equal_length(api: Client, long_job: Job) -> None:
    body = get(api, f"jobs/{long_job.pk}/curves/train_loss")
    assert (len(body["x"]), len(body["y"]), len(body["wall_s"])) == (3000, 3000, 3000)
    assert (body["level"], body["num_points_total"]) == ("full", 3000)


def test_it_can_be_thinned_and_cut(api: Client, long_job: Job) -> None:
    body = get(api, f"jobs/{long_job.pk}/curves/train_loss?max_points=100&x_from=1001&x_to=2000")
    assert (body["level"], body["num_points_total"]) == ("minmaxlttb", 1000)
    assert len(body["x"]) <= 100
    assert (min(body["x"]), max(body["x"])) == (1001, 2000)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("max_points=1", "max_points"),
        ("max_points=x", "max_points"),
        ("x_from=1.5", "x_from"),
        (f"x_to={10**30}", "x_to"),
        ("from=3", "from"),
    ],
)
def test_a_wrong_parameter_of_a_curve_is_named(api: Client, long_job: Job, query: str, field: str) -> None:
    assert fields_refused(api, f"jobs/{long_job.pk}/curves/train_loss?{query}") == [field]


def test_a_curve_that_may_still_come_is_empty(api: Client, alice: User, long_job: Job) -> None:
    assert get(api, f"jobs/{make_job(alice).pk}/curves/train_loss")["x"] == []
    assert get(api, f"jobs/{long_job.pk}/curves/eval_loss")["x"] == []


def test_a_curve_that_never_came_is_404(api: Client, alice: User) -> None:
    assert api.get(f"/api/v1/jobs/{make_ended_job(alice).pk}/curves/eval_loss").status_code == 404


def test_a_range_without_points_is_empty(api: Client, alice: User) -> None:
    assert get(api, f"jobs/{make_ended_job(alice).pk}/curves/train_loss?x_from=1000")["x"] == []


def test_a_comparison_has_diff_metrics_and_figures(api: Client, alice: User) -> None:
    slow = make_ended_job(alice, summary={"steady_step_time_ms": 8.0})
    fast = make_ended_job(alice, spec=make_spec(precision="bf16-mixed"), summary={"steady_step_time_ms": 2.0})
    body = get(api, f"compare?jobs={slow.pk},{fast.pk}&series=train_loss")
    assert [job["id"] for job in body["jobs"]] == [slow.pk, fast.pk]
    assert body["diff"] == [{"field": "precision", "label": "Precision", "unit": "", "values": ["fp32", "bf16-mixed"]}]
    step_time = next(row for row in body["metrics"] if row["name"] == "steady_step_time_ms")
    assert (step_time["values"], step_time["best"], step_time["better"]) == ([8.0, 2.0], 1, "lower")
    for figure in body["figures"].values():
        go.Figure(figure)


def test_a_comparison_in_groups_is_held_against_a_baseline(api: Client, alice: User) -> None:
    jobs = [
        make_ended_job(
            alice,
            spec=make_spec(precision=precision, seed=seed),
            summary={"steady_step_time_ms": time * factor},
        )
        for precision, factor in (("fp32", 1.0), ("bf16-mixed", 0.5))
        for seed, time in enumerate([10.0, 12.0, 8.0])
    ]
    ids = ",".join(str(job.pk) for job in jobs)
    body = get(api, f"compare?jobs={ids}&group=precision&band=minmax&baseline={jobs[0].pk}")
    assert [(column["label"], len(column["jobs"]), column["is_baseline"]) for column in body["columns"]] == [
        ("fp32", 3, True),
        ("bf16-mixed", 3, False),
    ]
    own, other = next(row for row in body["cells"] if row["name"] == "steady_step_time_ms")["cells"]
    assert own["spread"] == {"mean": 10.0, "low": 8.0, "high": 12.0, "n": 3}
    assert (own["verdict"], own["delta"]) == (None, None)
    assert (other["value"], other["delta"], other["verdict"], other["is_best"]) == (5.0, -5.0, "better", True)
    assert other["interval"]["ratio"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("query", "field"), [("baseline=999999", "baseline"), ("group=colour", "group"), ("band=wide", "band")]
)
def test_a_wrong_way_to_compare_is_named(api: Client, alice: User, query: str, field: str) -> None:
    assert fields_refused(api, f"compare?jobs={make_job(alice).pk}&{query}") == [field]


def test_jobs_come_in_the_order_asked_and_each_once(api: Client, alice: User) -> None:
    one, two = make_job(alice), make_job(alice)
    body = get(api, f"compare?jobs={two.pk}, {one.pk},{two.pk}")
    assert [job["id"] for job in body["jobs"]] == [two.pk, one.pk]
    assert body["jobs"][0]["note"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("", "jobs"),
        ("jobs=", "jobs"),
        ("jobs=1,two", "jobs"),
        ("jobs=-1", "jobs"),
        ("jobs=²", "jobs"),
        ("jobs=" + ",".join(map(str, range(1, MAX_COMPARED + 2))), "jobs"),
        ("jobs=1&colour=red", "colour"),
        (f"jobs=1&series={'x' * 101}", "series"),
    ],
)
def test_a_wrong_parameter_of_a_comparison_is_named(api: Client, query: str, field: str) -> None:
    assert fields_refused(api, f"compare?{query}") == [field]


def test_the_leaderboard_has_cells_with_medians(api: Client, alice: User) -> None:
    job = make_ended_job(alice)
    [board] = get(api, "leaderboard")["boards"]
    [row] = board["rows"]
    assert row["cells"]["steady_step_time_ms"] == {"median": 10.0, "interval": None, "n": 1, "num_missed": 0}
    assert row["cells"]["mfu"]["median"] is None
    assert (row["jobs"], row["rank"], row["verdict"], row["owners"]) == ([job.pk], 1, "baseline", ["alice"])
    assert [line["num_runs"] for line in get(api, "boards")["boards"]] == [1]
    assert get(api, f"boards/{board['id']}?metric=samples_per_s")["rows"][0]["rank"] == 1


def test_queues_workers_and_options_are_told(api: Client, alice: User) -> None:
    job = make_job(alice)
    start(job)
    [queue] = get(api, "queues")["queues"]
    assert (queue["name"], queue["depth"], queue["running"], queue["workers"]) == ("default", 0, 1, ["box"])
    [worker] = get(api, "workers")["workers"]
    assert (worker["is_online"], worker["devices"][0]["job"]) == (True, job.pk)
    options = get(api, "options")
    assert "precision" in options["spec_schema"]["properties"]
    assert [model["name"] for model in options["catalog"]["models"]]
    assert (options["queues"], options["teams"]) == (["default"], ["Pit crew"])
