"""The curve of a job that went on from a checkpoint: the points before that step, its own, and the seam between."""

import pytest
from django.test import Client

from jobs.contract.states import Outcome
from jobs.figures import overlay_figure
from jobs.models import Attempt, Job, User
from jobs.selectors.comparison import compare
from jobs.selectors.curves import read_curve, read_curves, series_names, wall_before
from jobs.selectors.leaderboard import view_board, visible_boards
from jobs.selectors.overlay import View, overlay
from jobs.services.finish import finish_attempt, lose_attempt
from jobs.services.record import record_resumed
from tests.jobs.factories import make_ended_job, make_job, make_summary, make_worker, points, record, start


@pytest.fixture
def job(alice: User) -> Job:
    """Lost at step 25 and gone on after step 20; lost again at step 35 and gone on after step 30."""
    job, worker = make_job(alice, max_attempts=3), make_worker()
    origin = None
    for first, last, went_on_after in ((1, 25, None), (21, 35, 20), (31, 40, 30)):
        attempt = start(job, worker)
        if origin and went_on_after:
            record_resumed(attempt, origin, went_on_after)
        steps = range(first, last + 1)
        record(attempt, points(steps, train_loss=[1000 * attempt.number + step for step in steps]))
        origin = attempt
        if last < 40:
            lose_attempt(attempt, "gone", release_devices=True)
    return Job.objects.select_related("last_attempt").get(pk=job.pk)


def last(job: Job) -> Attempt:
    assert job.last_attempt
    return job.last_attempt


def test_each_step_comes_from_the_attempt_that_the_work_stands_on(job: Job) -> None:
    curve = read_curve(last(job), "train_loss")
    assert curve.x == list(range(1, 41))
    assert curve.y == [1000 + s for s in range(1, 21)] + [2000 + s for s in range(21, 31)] + [
        3000 + s for s in range(31, 41)
    ]
    assert curve.seams == [20, 30]


def test_the_time_of_training_goes_on_where_the_checkpoint_was(job: Job) -> None:
    """The factories give a step the wall time of its number, 10 ms each, whichever attempt takes it."""
    curve = read_curve(last(job), "train_loss")
    assert curve.wall_s[19] == pytest.approx(0.20)
    assert curve.wall_s[20] == pytest.approx(0.20 + 0.21)
    assert curve.wall_s[30] == pytest.approx(0.20 + 0.30 + 0.31)
    assert wall_before(last(job)) == pytest.approx(0.50)


def test_a_range_that_begins_after_the_seam_has_the_same_time(job: Job) -> None:
    whole, part = read_curve(last(job), "train_loss"), read_curve(last(job), "train_loss", x_from=35, x_to=36)
    assert (part.x, part.wall_s) == ([35, 36], whole.wall_s[34:36])


def test_an_attempt_that_began_anew_inherits_nothing(job: Job) -> None:
    first = job.attempts.get(number=1)
    curves = read_curves([first, last(job)], "train_loss")
    assert (curves[first.pk].x, curves[first.pk].seams) == (list(range(1, 26)), [])
    assert len(curves[last(job).pk].x) == 40
    assert wall_before(first) == 0


def test_a_series_that_only_the_earlier_attempt_has_is_known(job: Job) -> None:
    first = job.attempts.get(number=1)
    record_again = points([10], eval_loss=[5.0])
    Attempt.objects.filter(pk=first.pk).update(outcome=None)
    record(first, record_again)
    assert series_names(last(job)) == ["train_loss", "eval_loss"]
    assert read_curve(last(job), "eval_loss").x == [10]


def test_the_seams_are_drawn_where_they_are_on_either_axis(job: Job) -> None:
    shown = Job.objects.select_related("last_attempt").get(pk=job.pk)
    by_step, by_time = (overlay_figure(overlay([shown], View(x=x)))["layout"]["shapes"] for x in ("step", "wall_s"))
    assert [shape["x0"] for shape in by_step] == [20, 30]
    assert [shape["x0"] for shape in by_time] == pytest.approx([0.2, 0.5])


def test_the_page_and_the_api_tell_the_seams(job: Job, api: Client, client: Client, alice: User) -> None:
    told = api.get(f"/api/v1/jobs/{job.pk}/curves/train_loss").json()
    assert (told["seams"], len(told["x"])) == ([20, 30], 40)
    assert [attempt["resumed_at_step"] for attempt in api.get(f"/api/v1/jobs/{job.pk}").json()["attempts"]] == [
        None,
        20,
        30,
    ]
    client.force_login(alice)
    points = client.get(f"/jobs/{job.pk}/points/").json()
    assert (points["seams"], points["wall_before"]) == ([20, 30], pytest.approx(0.5))
    assert "from step 30" in " ".join(client.get(f"/jobs/{job.pk}/").content.decode().split())


def test_a_run_in_two_parts_never_ranks_on_its_time(job: Job, alice: User) -> None:
    finish_attempt(last(job), Outcome.SUCCEEDED, make_summary(steady_step_time_ms=1.0, final_train_loss=0.5))
    whole = make_ended_job(alice, worker=make_worker(), summary={"steady_step_time_ms": 9.0})
    assert [row.job_ids for board in visible_boards(alice) for row in view_board(board).rows] == [[whole.pk]]
    resumed = Job.objects.select_related("last_attempt").get(pk=job.pk)
    rows = {row.name: row for row in compare([resumed, whole]).metrics}
    assert rows["steady_step_time_ms"].best is None
    assert rows["final_train_loss"].best == 0
