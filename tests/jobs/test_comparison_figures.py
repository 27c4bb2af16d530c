"""The charts beside the curves, as data, each accepted by Plotly's own classes."""

import json
from typing import Any

import plotly.graph_objects as go
import pytest

from jobs.contract.metrics import Better
from jobs.figures import compared_figures
from jobs.figures.scatter import Point, pareto_front
from jobs.figures.style import colour_of
from jobs.models import Job, User
from jobs.selectors.breakeven import break_even
from jobs.selectors.columns import Column
from jobs.selectors.compared import Compared, compare_columns
from jobs.selectors.phases import verdict_of
from jobs.statistics import Band
from tests.jobs.factories import GIB, make_ended_job, make_job, make_spec

pytestmark = pytest.mark.django_db

PHASES = {
    "phase_data_wait_ms": 41.0,
    "phase_host_to_device_ms": 4.0,
    "phase_forward_ms": 20.0,
    "phase_backward_ms": 30.0,
    "phase_optimizer_ms": 5.0,
}


def run(owner: User, precision: str = "fp32", seed: int = 0, **summary: object) -> Job:
    return make_ended_job(owner, spec=make_spec(precision=precision, seed=seed), summary=summary)


def compared(jobs: list[Job], group: str = "", baseline: int | None = None) -> Compared:
    return compare_columns(jobs, group=group, legend="", baseline=baseline, band=Band.STANDARD_DEVIATION)


def figures(*args: Any, **choice: str) -> dict[str, Any]:
    drawn = compared_figures(compared(*args), **choice)
    for figure in drawn.values():
        go.Figure(figure)
        assert figure["layout"]["meta"]["caption"]
        assert figure["layout"]["meta"]["alternative"]
    return json.loads(json.dumps(drawn, allow_nan=False))


def test_only_what_was_measured_is_drawn(alice: User) -> None:
    assert figures([make_job(alice)]) == {}
    assert figures([]) == {}
    assert set(figures([run(alice)])) == {"time", "memory", "scatter"}
    assert set(figures([run(alice), run(alice, "bf16-mixed")])) == {"time", "memory", "scatter", "parallel"}


def test_a_step_is_stacked_by_its_parts_with_a_verdict(alice: User) -> None:
    step = figures([run(alice, **PHASES), run(alice)])["step"]
    assert [(trace["name"], trace["x"]) for trace in step["data"]][:2] == [
        ("Waiting for data", [41.0]),
        ("Copy to the device", [4.0]),
    ]
    assert step["layout"]["barmode"] == "stack"
    assert "data-bound: 41 % waiting for data" in step["layout"]["meta"]["alternative"]


@pytest.mark.parametrize(
    ("slow_part", "spec", "words"),
    [
        (
            "phase_data_wait_ms",
            {"data_loading": "dataloader", "num_workers": 2},
            "data-bound: 40 % waiting for data; raise num_workers (now 2)",
        ),
        (
            "phase_data_wait_ms",
            {"data_loading": "on-device"},
            "data-bound: 40 % waiting for data, although it lives on the device; raise the batch",
        ),
        (
            "phase_host_to_device_ms",
            {},
            "copy-bound: 40 % copying to the device; keep the data there, or turn pin_memory on",
        ),
        (
            "phase_communication_exposed_ms",
            {},
            "communication-bound: 40 % waiting for other ranks; raise grad_accum_steps or compress gradients",
        ),
        (
            "phase_communication_exposed_ms",
            {"parallelism": "fsdp2"},
            "communication-bound: 40 % waiting for other ranks; raise micro_batch_size",
        ),
        (
            "phase_optimizer_ms",
            {},
            "optimizer-bound: 40 % updating weights; try a fused optimizer or a larger batch",
        ),
        (
            "phase_backward_ms",
            {},
            "compute-bound: 100 % forward and backward; a shorter precision or compilation may help",
        ),
    ],
)
def test_a_verdict_names_the_option_to_try(slow_part: str, spec: dict[str, object], words: str) -> None:
    assert verdict_of({"phase_forward_ms": 6.0, slow_part: 4.0}, spec) == words


def test_bars_have_the_colours_of_the_curves_when_the_legend_goes_by_a_field(alice: User) -> None:
    jobs = [run(alice, precision) for precision in ("fp32", "bf16-mixed", "fp32")]
    by_field = compare_columns(jobs, group="", legend="precision", baseline=None, band=Band.STANDARD_DEVIATION)
    [bars] = compared_figures(by_field)["time"]["data"]
    assert bars["meta"]["places"] == [0, 1, 0]
    assert bars["marker"]["color"] == [colour_of(place) for place in (0, 1, 0)]


def test_exposed_communication_is_not_counted_twice(alice: User) -> None:
    [step] = compared([run(alice, phase_backward_ms=30.0, phase_communication_exposed_ms=10.0)]).steps
    assert step.parts_ms == {"phase_backward_ms": 20.0, "phase_communication_exposed_ms": 10.0}


def test_under_fsdp2_both_passes_wait_for_communication(alice: User) -> None:
    spec = make_spec(parallelism="fsdp2", num_devices=2)
    measured = {"phase_forward_ms": 20.0, "phase_backward_ms": 60.0, "phase_communication_exposed_ms": 20.0}
    [step] = compared([make_ended_job(alice, spec=spec, summary=measured)]).steps
    assert step.parts_ms == {
        "phase_forward_ms": 15.0,
        "phase_backward_ms": 45.0,
        "phase_communication_exposed_ms": 20.0,
    }


def test_memory_of_each_kind_stands_by_itself(alice: User) -> None:
    jobs = [run(alice, peak_allocated_bytes=2 * GIB, peak_rss_bytes=GIB), run(alice, peak_rss_bytes=3 * GIB)]
    memory = figures(jobs)["memory"]
    assert [(trace["name"], trace["y"]) for trace in memory["data"]] == [
        ("Peak allocated GPU memory", [2.0, None]),
        ("Peak process memory", [1.0, 3.0]),
    ]
    assert memory["layout"]["barmode"] == "group"


def test_the_front_holds_what_nothing_beats_in_both() -> None:
    points = [
        Point(Column(str(n), [], n), *at) for n, at in enumerate([(1, 5), (2, 3), (3, 4), (4, 1), (2, 6), (1, 7)])
    ]
    lower = pareto_front(points, Better.LOWER, Better.LOWER)
    assert [(point.x, point.y) for point in lower] == [(1, 5), (2, 3), (4, 1)]
    assert [(point.x, point.y) for point in pareto_front(points, Better.HIGHER, Better.HIGHER)] == [
        (1, 7),
        (2, 6),
        (3, 4),
        (4, 1),
    ]
    assert [(point.x, point.y) for point in pareto_front(points, Better.HIGHER, Better.LOWER)] == [(4, 1)]
    assert pareto_front(points, Better.NEITHER, Better.LOWER) == []


def test_any_two_figures_stand_against_each_other(alice: User) -> None:
    jobs = [
        run(alice, steady_step_time_ms=time, peak_rss_bytes=size * GIB) for time, size in ((10, 1), (5, 2), (12, 3))
    ]
    scatter = figures(jobs, across="peak_rss_bytes", up="steady_step_time_ms")["scatter"]
    front, *points = scatter["data"]
    assert (front["x"], front["y"], front["line"]["shape"]) == ([1.0, 2.0], [10.0, 5.0], "hv")
    assert len(points) == 3
    assert scatter["layout"]["xaxis"]["title"]["text"] == "Peak process memory (GiB)"
    assert (
        "no better direction"
        in figures(jobs, across="num_steps", up="num_steps")["scatter"]["layout"]["meta"]["caption"]
    )


def test_repeats_are_boxes_with_every_run(alice: User) -> None:
    jobs = [run(alice, name, seed, final_eval_loss=2.0 + seed) for name in ("fp32", "bf16-mixed") for seed in range(3)]
    boxes = figures(jobs, "precision")["repeats"]
    assert [(box["name"], box["y"], box["boxpoints"]) for box in boxes["data"]] == [
        ("fp32", [2.0, 3.0, 4.0], "all"),
        ("bf16-mixed", [2.0, 3.0, 4.0], "all"),
    ]
    assert [box["hovertext"] for box in boxes["data"]] == [[f"#{job.pk}" for job in jobs[at : at + 3]] for at in (0, 3)]
    assert boxes["layout"]["xaxis"]["ticktext"] == ["fp32", "bf16-mixed"]
    assert "repeats" not in figures(jobs)


def test_long_names_of_groups_are_broken_into_lines_and_told_in_full(alice: User) -> None:
    differing = [{"sequence_length": 64, "dropout": 0.5, "micro_batch_size": size} for size in (8, 16)]
    jobs = [
        make_ended_job(alice, spec=make_spec(seed=seed, **spec), summary=PHASES)
        for spec in ({}, *differing)
        for seed in (0, 1)
    ]
    drawn = figures(jobs, "configuration")
    names = [column.label for column in compared(jobs, "configuration").columns]
    for name, axis in (("time", "xaxis"), ("memory", "xaxis"), ("repeats", "xaxis"), ("step", "yaxis")):
        ticks = drawn[name]["layout"][axis]["ticktext"]
        assert [tick.replace("<br>", " ") for tick in ticks] == names
        assert all(len(part) <= 34 for tick in ticks for part in tick.split("<br>"))
    assert all(trace["hovertext"] == names for name in ("time", "memory", "step") for trace in drawn[name]["data"])


def test_bars_of_repeats_say_what_their_whiskers_are(alice: User) -> None:
    jobs = [run(alice, seed=seed) for seed in range(2)]
    alone, grouped = (figures(jobs, group)["time"]["layout"]["meta"]["caption"] for group in ("", "precision"))
    assert alone == "Step time (ms) of each run."
    assert "one standard deviation either way" in grouped


@pytest.mark.parametrize(
    ("own", "base", "steps"),
    [
        ((20.0, 0.010), (1.0, 0.020), 1900),
        ((1.0, 0.010), (1.0, 0.010), 0),
        ((0.5, 0.010), (1.0, 0.010), 0),
        ((20.0, 0.020), (1.0, 0.020), None),
        ((20.0, 0.030), (1.0, 0.020), None),
        ((0.5, 0.030), (1.0, 0.020), None),
    ],
)
def test_a_slow_start_pays_off_when_faster_steps_have_made_up_for_it(
    own: tuple[float, float], base: tuple[float, float], steps: int | None
) -> None:
    assert break_even(*own, *base) == steps


def test_what_gains_nothing_never_pays_off(alice: User) -> None:
    eager = run(alice, first_step_s=1.0, steady_step_time_ms=20.0)
    hopeless = run(alice, "bf16-mixed", first_step_s=30.0, steady_step_time_ms=21.0)
    told = {course.column.job_ids[0]: course.words for course in compared([hopeless, eager], "", eager.pk).courses}
    assert told == {
        hopeless.pk: "does not pay off: its steps are no faster",
        eager.pk: "what the others are held against",
    }


def test_a_compiled_run_pays_off_after_so_many_steps(alice: User) -> None:
    eager = run(alice, first_step_s=1.0, steady_step_time_ms=20.0)
    compiled = run(alice, "bf16-mixed", first_step_s=13.4, steady_step_time_ms=10.0)
    [_base, course] = compared([eager, compiled], "", eager.pk).courses
    assert (course.pays_off_after, course.words) == (1240, "pays off after 1,240 steps")
    lines = figures([eager, compiled], "", eager.pk)["breakeven"]["data"]
    assert lines[1]["x"] == [0, 1240, 1860]
    assert lines[1]["y"][1] == pytest.approx(1.0 + 1240 * 0.02)


def test_one_step_is_no_steps(alice: User) -> None:
    eager = run(alice, first_step_s=1.0, steady_step_time_ms=20.0)
    compiled = run(alice, "bf16-mixed", first_step_s=1.005, steady_step_time_ms=10.0)
    [_base, course] = compared([eager, compiled], "", eager.pk).courses
    assert course.words == "pays off after 1 step"


def test_parallel_coordinates_run_over_what_differs_and_what_was_measured(alice: User) -> None:
    jobs = [
        run(alice, "fp32", steady_step_time_ms=10.0),
        run(alice, "bf16-mixed", steady_step_time_ms=5.0),
        make_job(alice),
    ]
    parallel = figures(jobs)["parallel"]
    titles = parallel["layout"]["xaxis"]["ticktext"]
    assert titles[:2] == ["Device", "Precision"]
    place = titles.index("Step time (ms)")
    assert [trace["y"][place] for trace in parallel["data"]] == [1.0, 0.0, None]
    assert "bf16-mixed" in [mark["text"] for mark in parallel["layout"]["annotations"]]
