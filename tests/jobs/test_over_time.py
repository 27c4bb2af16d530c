"""Memory and devices over wall time: which runs recorded what, in units, as data that Plotly accepts."""

import json
from typing import Any

import plotly.graph_objects as go
import pytest

from jobs.figures import over_time_figures
from jobs.models import Job, User
from jobs.selectors.jobs import visible_jobs
from jobs.selectors.over_time import over_time
from jobs.selectors.overlay import View
from tests.jobs.factories import GIB, make_ended_job, make_job, make_spec, make_worker, points, record, start

pytestmark = pytest.mark.django_db


def sampled(owner: User, seed: int = 0, **series: list[float]) -> Job:
    """A running job with a sample of each series a hundred steps apart."""
    job = make_job(owner, spec=make_spec(seed=seed))
    attempt = start(job, make_worker(f"host-{job.pk}"))
    count = len(next(iter(series.values())))
    steps = [100 * place for place in range(1, count + 1)]
    record(attempt, points(steps, **{f"telemetry.{name}": values for name, values in series.items()}))
    return visible_jobs(owner).get(pk=job.pk)


def figures(jobs: list[Job], **view: object) -> dict[str, Any]:
    drawn = over_time_figures(over_time(jobs, View(**view)))  # type: ignore[arg-type]
    for figure in drawn.values():
        go.Figure(figure)
        assert figure["layout"]["meta"]["alternative"]
    return json.loads(json.dumps(drawn, allow_nan=False))


def test_each_quantity_is_a_row_in_its_unit_over_seconds(alice: User) -> None:
    job = sampled(alice, process_rss_bytes=[GIB, 2 * GIB], gpu_memory_used_bytes=[4e6, 8e6], gpu_power_w=[100, 300])
    drawn = figures([job])
    memory = drawn["memory"]
    assert [note["text"] for note in memory["layout"]["annotations"]] == [
        "GPU memory in use (MiB)",
        "Process memory (GiB)",
    ]
    assert [trace["yaxis"] for trace in memory["data"]] == ["y", "y2"]
    assert memory["data"][1]["y"] == [1.0, 2.0]
    assert memory["layout"]["xaxis"]["title"]["text"] == "Wall time since the first step (s)"
    assert memory["layout"]["yaxis"]["domain"][0] > memory["layout"]["yaxis2"]["domain"][1]
    assert [note["text"] for note in drawn["devices"]["layout"]["annotations"]] == ["GPU power (W)"]


def test_runs_that_did_not_record_what_others_did_are_named(alice: User) -> None:
    with_gpu, without = sampled(alice, gpu_power_w=[100.0]), sampled(alice, process_rss_bytes=[1e6])
    drawn = figures([with_gpu, without])
    assert f"GPU power: not recorded by #{without.pk}." in drawn["devices"]["layout"]["meta"]["caption"]
    assert f"Process memory: not recorded by #{with_gpu.pk}." in drawn["memory"]["layout"]["meta"]["caption"]


def test_repeats_have_a_mean_and_a_band(alice: User) -> None:
    jobs = [sampled(alice, seed, gpu_power_w=[100.0 + seed, 200.0 + seed]) for seed in (0, 2)]
    figure = figures(jobs, group="configuration")["devices"]
    assert [trace["meta"]["part"] for trace in figure["data"]] == [
        "GPU power (W), low",
        "GPU power (W), high",
        "GPU power (W)",
    ]
    assert figure["data"][-1]["y"] == [101.0, 201.0]
    assert "Mean of repeats" in figure["layout"]["meta"]["caption"]


def test_a_range_is_in_seconds(alice: User) -> None:
    job = sampled(alice, gpu_power_w=[1.0, 2.0, 3.0, 4.0])
    whole = figures([job])["devices"]["data"][0]
    part = figures([job], x_from=whole["x"][1], x_to=whole["x"][2])["devices"]["data"][0]
    assert part["y"] == [2.0, 3.0]


def test_what_recorded_no_samples_has_no_panel(alice: User) -> None:
    assert figures([make_job(alice), make_ended_job(alice)]) == {}
    assert figures([]) == {}
