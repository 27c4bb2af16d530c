"""Curves on one plot: which axis, how smoothed, cut, thinned and grouped."""

import itertools
import math
from datetime import UTC, datetime

import numpy as np
import pytest

from jobs.contract.metrics import Summary
from jobs.contract.states import Outcome
from jobs.models import Attempt, Job, User
from jobs.selectors.jobs import visible_jobs
from jobs.selectors.overlay import Axis, Line, View, at_best_step, overlay
from jobs.services.compaction import compact
from jobs.services.finish import finish_attempt
from jobs.smoothing import Smoothing
from jobs.statistics import Band
from tests.jobs.factories import make_ended_job, make_job, make_spec, make_worker, points, record, start

pytestmark = pytest.mark.django_db

_hosts = itertools.count()


def run(owner: User, *events: object, summary: dict[str, object] | None = None, **spec: object) -> Job:
    """A job that has ended with these points; each on a host of its own."""
    job = make_job(owner, spec=make_spec(**spec))
    attempt = start(job, make_worker(f"host-{next(_hosts)}"))
    record(attempt, *events)  # type: ignore[arg-type]
    finish_attempt(attempt, Outcome.SUCCEEDED, Summary.model_validate(summary or {}))
    return visible_jobs(owner).get(pk=job.pk)


def long_run(owner: User, num_steps: int = 20_000, **spec: object) -> Job:
    steps = range(1, num_steps + 1)
    return run(owner, points(steps, train_loss=[math.sin(step / 50) + 2 for step in steps]), **spec)


def only(jobs: list[Job], **view: object) -> Line:
    [line] = overlay(jobs, View(**view)).lines  # type: ignore[arg-type]
    return line


def test_a_line_for_each_job_in_its_place(alice: User) -> None:
    jobs = [make_ended_job(alice, losses=losses) for losses in ([3.0, 2.0, 1.0], [5.0])]
    seen = overlay(list(reversed(jobs)), View())
    assert [(line.column.job_ids, line.x, line.y, line.column.place) for line in seen.lines] == [
        ([jobs[1].pk], [1], [5.0], 0),
        ([jobs[0].pk], [1, 2, 3], [3.0, 2.0, 1.0], 1),
    ]
    assert seen.notes == {}


def test_many_jobs_cost_as_many_queries_as_one(alice: User, django_assert_num_queries: object) -> None:
    for _number in range(5):
        make_ended_job(alice)
    jobs = list(visible_jobs(alice))
    for shown in (jobs[:1], jobs):
        with django_assert_num_queries(2):  # type: ignore[operator]
            overlay(shown, View())


@pytest.mark.parametrize(
    ("axis", "x"),
    [
        (Axis.STEP, [1, 2, 3]),
        (Axis.SAMPLES, [64, 128, 192]),
        (Axis.TOKENS, [64 * 128, 128 * 128, 192 * 128]),
        (Axis.WALL, [0.01, 0.02, 0.03]),
    ],
)
def test_axes_that_a_run_knows_by_itself(alice: User, axis: Axis, x: list[float]) -> None:
    spec = {"micro_batch_size": 16, "grad_accum_steps": 4}
    told = {"samples_per_s": 100.0, "tokens_per_s": 12_800.0}
    job = run(alice, points([1, 2, 3], train_loss=[3, 2, 1]), summary=told, **spec)
    assert only([job], x=axis).x == pytest.approx(x)


def test_the_time_of_day_begins_when_the_model_was_built(alice: User) -> None:
    job = run(alice, points([1, 2], train_loss=[2, 1]), summary={"build_s": 4.0})
    attempt = Attempt.objects.get(job=job)
    assert attempt.running_at
    began_ms = 1000 * (attempt.running_at.timestamp() + 4)
    assert only([job], x=Axis.CLOCK).x == pytest.approx([began_ms + 10, began_ms + 20])


def test_another_series_is_joined_by_step_with_its_last_value(alice: User) -> None:
    job = run(alice, points([1, 2, 3, 4], train_loss=[4, 3, 2, 1]), points([2, 4], eval_loss=[0.5, 0.25]))
    line = only([job], x="eval_loss")
    assert line.x == pytest.approx([math.nan, 0.5, 0.5, 0.25], nan_ok=True)
    assert line.y == [4, 3, 2, 1]


def test_energy_is_the_powers_integral(alice: User) -> None:
    power = points([0, 100, 200], **{"telemetry.gpu_power_w": [100.0, 100.0, 300.0]})  # 0, 1 and 2 seconds
    job = run(alice, points([50, 100, 150, 300], train_loss=[4, 3, 2, 1]), power)
    # 100 W for a second, 200 on average in the next; between samples evenly, after the last one at its power.
    assert only([job], x=Axis.ENERGY).x == pytest.approx([50, 100, 200, 600])


def test_what_has_no_place_on_the_axis_says_so(alice: User) -> None:
    job = run(alice, points([1, 2], train_loss=[2, 1]))
    for axis in (Axis.TOKENS, Axis.ENERGY, "eval_loss"):
        seen = overlay([job], View(x=axis))
        assert seen.lines[0].x == []
        assert seen.notes == {job.pk: f"Job {job.pk} does not tell where its points stand on this axis."}


def test_jobs_without_a_curve_say_why(alice: User) -> None:
    queued, running = make_job(alice), make_job(alice)
    cancelled = make_job(alice, state="cancelled", outcome="cancelled")
    start(running)
    silent = make_ended_job(alice, losses=(), worker=make_worker("other"))
    assert overlay([queued, running, cancelled, silent], View()).notes == {
        queued.pk: f"Job {queued.pk} has not started yet.",
        running.pk: f"Job {running.pk} has not recorded points of “train_loss” yet.",
        cancelled.pk: f"Job {cancelled.pk} ended before it ran.",
        silent.pk: f"Job {silent.pk} recorded no points of “train_loss”.",
    }


def test_zooming_in_shows_every_point_of_a_long_run(alice: User) -> None:
    job = long_run(alice)
    whole, part = only([job]), only([job], x_from=5000.5, x_to=5100)
    assert len(whole.x) <= 2000
    assert whole.num_points_total == 20_000
    assert part.x == list(range(5001, 5101))


@pytest.mark.parametrize("axis", [Axis.WALL, Axis.SAMPLES, Axis.CLOCK])
def test_zooming_in_works_in_the_units_of_the_axis(alice: User, axis: Axis) -> None:
    jobs = [long_run(alice), long_run(alice, micro_batch_size=64)]
    whole = overlay(jobs, View(x=axis)).lines
    ends = (whole[0].x[500], whole[0].x[520])
    for line in overlay(jobs, View(x=axis, x_from=ends[0], x_to=ends[1])).lines:
        assert ends[0] <= min(line.x)
        assert max(line.x) <= ends[1]
        assert len(line.x) > 25


def test_zooming_into_one_of_two_runs_that_follow_each_other_shows_all_of_its_points(alice: User) -> None:
    jobs = [long_run(alice), long_run(alice)]
    for job, day in zip(jobs, (1, 2), strict=True):
        Attempt.objects.filter(job=job).update(running_at=datetime(2026, 11, day, tzinfo=UTC))
        assert compact(Attempt.objects.get(job=job))
    jobs = list(visible_jobs(alice).order_by("pk"))
    began_ms = datetime(2026, 11, 2, tzinfo=UTC).timestamp() * 1000
    ends = (began_ms + 49_995, began_ms + 51_005)
    earlier, later = overlay(jobs, View(x=Axis.CLOCK, x_from=ends[0], x_to=ends[1], max_points=150)).lines
    assert earlier.x == []
    assert len(later.x) == 101


def test_another_series_as_the_axis_keeps_its_small_numbers(alice: User) -> None:
    job = run(alice, points([1, 2, 3], train_loss=[3, 2, 1], learning_rate=[1e-7, 2e-7, 3e-7]))
    assert only([job], x="learning_rate").x == [1e-7, 2e-7, 3e-7]


def test_many_lines_share_the_points_of_a_plot(alice: User) -> None:
    job = long_run(alice, 3000)
    assert len(only([job]).x) > 1500
    assert all(len(line.x) <= 250 for line in overlay([job] * 200, View()).lines)


def test_smoothing_keeps_what_was_recorded_behind(alice: User) -> None:
    job = make_ended_job(alice, losses=[3.0, 1.0, 2.0])
    line = only([job], smoothing=Smoothing.RUNNING_MEAN, amount=2)
    assert line.y == pytest.approx([3, 2, 1.5])
    assert (line.raw_x, line.raw_y) == ([1, 2, 3], [3.0, 1.0, 2.0])


def test_what_is_not_finite_is_kept(alice: User) -> None:
    job = make_ended_job(alice, losses=[3.0, math.nan, math.inf, 1.0])
    assert only([job]).y == pytest.approx([3, math.nan, math.inf, 1], nan_ok=True)
    assert only([job], smoothing=Smoothing.EXPONENTIAL, amount=0.0).y == pytest.approx(
        [3, math.nan, math.nan, 1], nan_ok=True
    )


def repeats(alice: User) -> list[Job]:
    losses = {1: [3.0, 2.0], 2: [5.0, 4.0], 3: [4.0, 6.0]}
    return [
        make_ended_job(alice, spec=make_spec(seed=seed, precision=precision), losses=values)
        for precision in ("fp32", "bf16-mixed")
        for seed, values in losses.items()
    ]


@pytest.mark.parametrize(
    ("band", "reach"),
    [
        (Band.STANDARD_DEVIATION, [1, 2]),
        (Band.STANDARD_ERROR, [1 / math.sqrt(3), 2 / math.sqrt(3)]),
        (Band.INTERVAL, [4.302653 / math.sqrt(3), 2 * 4.302653 / math.sqrt(3)]),
        (Band.RANGE, [1, 2]),
    ],
)
def test_a_group_is_its_mean_with_a_band(alice: User, band: Band, reach: list[float]) -> None:
    lines = overlay(repeats(alice), View(group="precision", band=band)).lines
    assert [line.column.label for line in lines] == ["fp32", "bf16-mixed"]
    for line in lines:
        assert line.y == pytest.approx([4, 4])
        assert np.subtract(line.high, line.y) == pytest.approx(reach)
        assert np.subtract(line.y, line.low) == pytest.approx(reach)


def test_repeats_are_found_by_their_configuration(alice: User) -> None:
    lines = overlay(repeats(alice), View(group="configuration")).lines
    assert [(line.column.label, len(line.column.jobs)) for line in lines] == [("fp32", 3), ("bf16-mixed", 3)]


def test_repeats_of_different_lengths_have_a_mean_as_far_as_each_goes(alice: User) -> None:
    short, long = make_ended_job(alice, losses=[2.0, 2.0]), make_ended_job(alice, losses=[4.0, 4.0, 4.0, 4.0])
    line = only([short, long], group="model")
    assert line.x == [1, 2, 3, 4]
    assert line.y == pytest.approx([3, 3, 4, 4])


def test_repeats_at_different_steps_are_joined_by_straight_lines(alice: User) -> None:
    one = run(alice, points([1, 3, 5], train_loss=[1, 3, 5]))
    other = run(alice, points([2, 4], train_loss=[4, 8]))
    line = only([one, other], group="model")
    assert line.x == [1, 2, 3, 4, 5]
    assert line.y == pytest.approx([1, 3, 4.5, 6, 5])


def test_a_mean_breaks_where_no_repeat_has_a_finite_value(alice: User) -> None:
    losses = [3.0, math.nan, 2.0, math.inf, 1.0]
    diverged, other = make_ended_job(alice, losses=losses), make_ended_job(alice, losses=[1.0, math.nan, 4.0, 5.0, 3.0])
    assert [math.isfinite(y) for y in only([diverged], group="model").y] == [True, False, True, False, True]
    assert only([diverged, other], group="model").y == pytest.approx([2, math.nan, 3, 5, 2], nan_ok=True)


def test_a_mean_over_wall_time_begins_and_ends_with_every_repeat_that_was_looked_at_then(alice: User) -> None:
    """Samples are a second apart and come some milliseconds earlier or later; a run that is over is over."""
    early, late = points([100, 200, 300], load=[4, 4, 4]), points([101, 201, 301], load=[8, 8, 8])
    short = points([100, 200], load=[0, 0])
    jobs = [run(alice, event) for event in (early, late)]
    line = only(jobs, series="load", group="model", x=Axis.WALL)
    assert line.y == pytest.approx([6] * 6)
    assert only([*jobs, run(alice, short)], series="load", group="model", x=Axis.WALL).y[-1] == pytest.approx(6)


def test_by_wall_time_repeats_meet_at_the_same_moment(alice: User) -> None:
    jobs = [make_ended_job(alice, losses=[1.0, 2.0, 3.0]) for _repeat in range(2)]
    line = only(jobs, group="model", x=Axis.WALL)
    assert line.x == pytest.approx([0.01, 0.02, 0.03])
    assert line.y == pytest.approx([1, 2, 3])


def test_configurations_that_differ_beyond_what_a_label_holds_are_told_apart(alice: User) -> None:
    differing = {"sequence_length": 64, "dropout": 0.1, "precision": "bf16-mixed", "micro_batch_size": 8}
    specs: list[dict[str, object]] = [{}, differing, differing | {"weight_decay": 0.5}]
    jobs = [make_ended_job(alice, spec=make_spec(**spec)) for spec in specs]
    labels = [line.column.label for line in overlay(jobs, View(group="configuration")).lines]
    assert len(set(labels)) == 3


def test_the_legend_goes_by_any_field_and_equal_values_share_a_colour(alice: User) -> None:
    jobs = [make_ended_job(alice, spec=make_spec(precision=name)) for name in ("fp32", "bf16-mixed", "fp32")]
    columns = [line.column for line in overlay(jobs, View(legend="precision")).lines]
    assert [column.label for column in columns] == [
        f"{name} · #{job.pk}" for name, job in zip(("fp32", "bf16-mixed", "fp32"), jobs, strict=True)
    ]
    assert [column.place for column in columns] == [0, 1, 0]


def test_nothing_is_laid_over_nothing() -> None:
    seen = overlay([], View(group="precision", x="eval_loss"))
    assert (seen.lines, seen.notes) == ([], {})


def test_the_other_series_is_read_where_the_first_was_best(alice: User) -> None:
    job = run(
        alice, points([1, 2, 3, 4], train_loss=[4, 1, 2, 3]), points([1, 2, 3, 4], eval_accuracy=[0.1, 0.6, 0.9, 0.7])
    )
    silent = make_job(alice)
    [low] = at_best_step([job, silent], "train_loss", "eval_accuracy", lower_is_better=True)
    [high] = at_best_step([job, silent], "eval_accuracy", "train_loss", lower_is_better=False)
    assert (low.job, low.step, low.best, low.other) == (job, 2, 1, 0.6)
    assert (high.step, high.best, high.other) == (3, 0.9, 2)


def test_a_missing_second_series_leaves_its_place_empty(alice: User) -> None:
    [found] = at_best_step([make_ended_job(alice)], "train_loss", "eval_loss", lower_is_better=True)
    assert (found.step, found.other) == (3, None)
