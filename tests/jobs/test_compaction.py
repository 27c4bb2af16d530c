"""Once a run has ended its points are compacted: the same reads, bit for bit, out of less."""

import io
import math
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from jobs.contract.states import Outcome
from jobs.curve_blocks import BLOCK_POINTS
from jobs.models import Attempt, AuditEntry, CurveBlock, CurveChunk, Job, User
from jobs.models.attempt import CurveForm
from jobs.selectors.curves import (
    CurveView,
    read_all_series,
    read_curve,
    read_curves,
    read_own_curve,
    series_names,
    wall_before,
)
from jobs.services import compaction
from jobs.services.compaction import compact, drop_full_points, due
from jobs.services.finish import finish_attempt, lose_attempt
from jobs.services.record import record_points, record_resumed
from tests.jobs.factories import make_job, make_spec, make_worker, points, start
from workers.compactor import Compactor

pytestmark = pytest.mark.django_db

NUM_STEPS = 3 * BLOCK_POINTS + 5000


def losses(num_steps: int = NUM_STEPS) -> np.ndarray:
    """Noise with spikes both ways and breaks, some of them at the edges of blocks."""
    rng = np.random.default_rng(7)
    values = rng.normal(size=num_steps)
    for place in (5, BLOCK_POINTS - 1, BLOCK_POINTS, 30_000, num_steps - 1):
        if place < num_steps:
            values[place] = rng.choice([-50.0, 50.0])
    for place, odd in ((2000, math.nan), (BLOCK_POINTS - 10, math.inf), (40_000, -math.inf)):
        values[place : place + 20] = odd
    return values


def tell(attempt: Attempt, values: np.ndarray, first: int = 1, flush: int = 3000) -> None:
    for begin in range(0, len(values), flush):
        part = values[begin : begin + flush]
        steps = range(first + begin, first + begin + len(part))
        told = [points(steps, train_loss=part)]
        told += [points([steps[-1]], eval_loss=[float(begin)], eval_accuracy=[0.5])]
        record_points(attempt, Attempt.objects.get(pk=attempt.pk).num_flushes, told)


def ended(values: np.ndarray, **job: Any) -> Attempt:
    attempt = start(make_job(spec=make_spec(num_steps=NUM_STEPS), **job))
    tell(attempt, values)
    finish_attempt(attempt, Outcome.SUCCEEDED)
    return Attempt.objects.get(pk=attempt.pk)


def same(one: CurveView, other: CurveView) -> bool:
    """Whether two readings are equal, NaN included."""
    lists = ((one.x, other.x), (one.wall_s, other.wall_s), (one.y, other.y))
    told = (one.series, one.level, one.num_points_total, one.seams)
    return all(np.array_equal(a, b, equal_nan=True) for a, b in lists) and told == (
        other.series,
        other.level,
        other.num_points_total,
        other.seams,
    )


def test_every_full_reading_is_the_same_bit_for_bit_before_and_after() -> None:
    attempt = ended(losses())
    ranges: list[dict[str, int]] = [
        {},
        {"x_from": 10},
        {"x_to": 16_000},
        {"x_from": 12_345, "x_to": 23_456},
        {"x_from": 10**6},
        {"x_from": 20, "x_to": 10},
    ]
    before = [read_curve(attempt, name, **cut) for name in ("train_loss", "eval_loss", "nothing") for cut in ranges]
    names, curve = series_names(attempt), read_own_curve(attempt, "train_loss")
    assert compact(attempt)
    after = [read_curve(attempt, name, **cut) for name in ("train_loss", "eval_loss", "nothing") for cut in ranges]
    assert all(map(same, before, after))
    assert series_names(attempt) == names == ["train_loss", "eval_loss", "eval_accuracy"]
    assert read_own_curve(attempt, "train_loss").values.tobytes() == curve.values.tobytes()
    assert read_own_curve(attempt, "train_loss").wall_s.tobytes() == curve.wall_s.tobytes()
    assert not CurveChunk.objects.exists()


@pytest.mark.parametrize("max_points", [10, 100, 1000])
def test_a_zoomed_reading_has_the_extremes_and_the_breaks_of_every_point_in_its_range(max_points: int) -> None:
    values = losses()
    attempt = ended(values)
    compact(attempt)
    rng = np.random.default_rng(max_points)
    for _time in range(25):
        begin, end = sorted(rng.integers(1, NUM_STEPS + 1, size=2).tolist())
        view = read_curve(attempt, "train_loss", max_points=max_points, x_from=begin, x_to=end)
        part = values[begin - 1 : end]
        shown, there = np.array(view.y), np.isfinite(part)
        assert view.num_points_total == end - begin + 1
        assert shown[np.isfinite(shown)].max() == part[there].max()
        assert shown[np.isfinite(shown)].min() == part[there].min()
        assert view.x == sorted(set(view.x))
        assert np.array_equal(shown, values[np.array(view.x) - 1], equal_nan=True)
        assert set(shown[~np.isfinite(shown)].astype(str)) == set(part[~there].astype(str))
        assert len(view.x) <= max_points + 12  # the ends of breaks come on top
        assert view.level == ("full" if len(view.x) == end - begin + 1 else "minmaxlttb")


@pytest.mark.parametrize("begin", [5000, BLOCK_POINTS - 40])  # within one block, and over the edge of two
def test_a_short_range_has_every_point_though_few_are_asked_for(begin: int) -> None:
    attempt = ended(losses())
    compact(attempt)
    view = read_curve(attempt, "train_loss", max_points=100, x_from=begin, x_to=begin + 99)
    assert (view.x, view.level) == (list(range(begin, begin + 100)), "full")


def test_a_plot_of_all_reads_the_coarse_level_alone() -> None:
    attempt = ended(losses())
    compact(attempt)
    attempt.blocks.filter(series="train_loss").update(full=b"unreadable", medium=b"unreadable")
    assert len(read_curve(attempt, "train_loss", max_points=100).x) >= 50


def test_a_part_of_a_curve_reads_the_blocks_of_that_part_alone() -> None:
    attempt = ended(losses())
    compact(attempt)
    others = attempt.blocks.filter(series="train_loss", number__in=[0, 2, 3])
    others.update(full=b"unreadable", medium=b"unreadable", coarse=b"unreadable")
    view = read_curve(attempt, "train_loss", x_from=BLOCK_POINTS + 1, x_to=2 * BLOCK_POINTS)
    assert view.num_points_total == BLOCK_POINTS


def test_many_attempts_are_read_in_as_many_queries_as_one(django_assert_max_num_queries: Any) -> None:
    worker = make_worker()
    attempts = []
    for _number in range(3):
        attempt = start(make_job(spec=make_spec(num_steps=NUM_STEPS)), worker)
        tell(attempt, losses(20_000))
        finish_attempt(attempt, Outcome.SUCCEEDED)
        attempts.append(Attempt.objects.get(pk=attempt.pk))
        compact(attempts[-1])
    with django_assert_max_num_queries(4):
        curves = read_curves(attempts, "train_loss", max_points=500, x_from=100)
    assert [curves[attempt.pk].num_points_total for attempt in attempts] == [20_000 - 99] * 3


def test_a_run_of_few_points_becomes_one_chunk() -> None:
    attempt = start(make_job())
    for sequence in range(11):
        record_points(attempt, sequence, [points([sequence], train_loss=[1.0], eval_loss=[math.inf])])
    finish_attempt(attempt, Outcome.FAILED)
    attempt = Attempt.objects.get(pk=attempt.pk)
    before = read_curve(attempt, "eval_loss")
    assert compact(attempt)
    assert (attempt.chunks.count(), attempt.blocks.count()) == (1, 0)
    assert same(read_curve(attempt, "eval_loss"), before)


def test_a_run_without_points_is_done_at_once() -> None:
    attempt = start(make_job())
    finish_attempt(attempt, Outcome.CANCELLED)
    assert compact(Attempt.objects.get(pk=attempt.pk))
    assert not due(timedelta(0)).exists()


def test_what_is_done_is_done_once_and_never_to_a_living_run() -> None:
    running = start(make_job(), make_worker("other"))
    tell(running, losses(5000))
    assert not compact(Attempt.objects.get(pk=running.pk))
    assert running.chunks.exists()
    attempt = ended(losses())
    assert compact(attempt)
    blocks = list(attempt.blocks.values_list("pk", flat=True))
    assert not compact(attempt)
    assert list(attempt.blocks.values_list("pk", flat=True)) == blocks


def test_an_end_in_the_middle_leaves_everything_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    attempt = ended(losses())
    before = read_curve(attempt, "train_loss")

    def die(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("django.db.models.query.QuerySet.delete", die)
        with pytest.raises(KeyboardInterrupt):
            compact(attempt)
    assert not CurveBlock.objects.exists()
    assert same(read_curve(attempt, "train_loss"), before)
    assert [found.pk for found in due(timedelta(0))] == [attempt.pk]
    assert compact(attempt)
    assert same(read_curve(attempt, "train_loss"), before)


def test_the_host_compacts_what_settled_and_waits_while_something_is_measured() -> None:
    attempt = ended(losses(5000))
    Compactor(0).work(is_idle=True)
    assert Attempt.objects.get(pk=attempt.pk).curve_form == CurveForm.AS_TOLD
    Attempt.objects.update(ended_at=timezone.now() - timedelta(minutes=10))
    Compactor(0).work(is_idle=False)
    assert Attempt.objects.get(pk=attempt.pk).curve_form == CurveForm.AS_TOLD
    Compactor(0).work(is_idle=True)
    assert Attempt.objects.get(pk=attempt.pk).curve_form == CurveForm.COMPACTED


def test_a_run_that_cannot_be_read_does_not_keep_others_from_being_compacted() -> None:
    broken = ended(losses(5000))
    broken.chunks.update(payload=b"unreadable\n")
    whole = ended(losses(5000))
    Attempt.objects.update(ended_at=timezone.now() - timedelta(minutes=10))
    compactor = Compactor(0)
    for _time in range(2):
        compactor.work(is_idle=True)
    forms = dict(Attempt.objects.values_list("pk", "curve_form"))
    assert forms == {broken.pk: CurveForm.AS_TOLD, whole.pk: CurveForm.COMPACTED}


@pytest.fixture
def resumed() -> Job:
    """Lost at 9,000 of 20,000 steps, gone on after step 8,000."""
    job, worker = make_job(max_attempts=2, spec=make_spec(num_steps=20_000)), make_worker()
    first = start(job, worker)
    tell(first, losses(50_000)[:9000])
    lose_attempt(first, "gone", release_devices=True)
    second = start(job, worker)
    record_resumed(second, first, 8000)
    tell(second, losses(50_000)[8000:20_000], first=8001)
    finish_attempt(second, Outcome.SUCCEEDED)
    return Job.objects.select_related("last_attempt").get(pk=job.pk)


@pytest.mark.parametrize("which", [[1], [2], [1, 2]])
def test_a_curve_of_two_attempts_is_the_same_whichever_of_them_is_compacted(resumed: Job, which: list[int]) -> None:
    last = resumed.last_attempt
    assert last
    cuts: list[dict[str, int]] = [{}, {"x_from": 7990, "x_to": 8010}, {"x_from": 9000}, {"x_to": 100}]
    before = [read_curve(last, name, **cut) for name in ("train_loss", "eval_loss") for cut in cuts]
    wall = wall_before(last)
    for attempt in resumed.attempts.filter(number__in=which):
        assert compact(attempt)
    after = [read_curve(last, name, **cut) for name in ("train_loss", "eval_loss") for cut in cuts]
    assert all(map(same, before, after))
    assert (wall_before(last), before[0].seams) == (wall, [8000])


def test_the_page_catches_up_with_a_run_that_was_compacted_meanwhile(alice: User, client: Client) -> None:
    attempt = ended(losses(5000), owner=alice)
    client.force_login(alice)
    address = f"/jobs/{attempt.job_id}/points/"
    compact(attempt)
    told = client.get(f"{address}?attempt={attempt.pk}&after=0").json()
    assert (told["sequence"], told["series"]["train_loss"]["step"][-1]) == (attempt.num_flushes - 1, 5000)
    assert "wall_before" in told
    last = client.get(f"{address}?attempt={attempt.pk}&after={attempt.num_flushes - 1}").json()
    assert last["series"] == {}


def test_compacted_points_take_half_of_what_they_took(settings: object) -> None:
    values = np.exp(-np.arange(NUM_STEPS) / 1e4) + np.random.default_rng(1).normal(size=NUM_STEPS) * 0.01
    attempt = ended(values)
    before = sum(len(chunk.payload) for chunk in attempt.chunks.all())
    compact(attempt)
    after = sum(len(b.full) + len(b.medium or b"") + len(b.coarse or b"") for b in attempt.blocks.all())
    assert before <= 25 * attempt.num_points
    assert after <= 12 * attempt.num_points


def test_all_series_of_a_run_are_read_in_as_many_queries_as_one(django_assert_max_num_queries: Any) -> None:
    attempt = ended(losses(20_000))
    expected = {name: read_curve(attempt, name, max_points=500) for name in series_names(attempt)}
    with django_assert_max_num_queries(4):
        living = read_all_series(attempt, max_points=500)
    assert living.keys() == expected.keys()
    assert all(same(living[name], curve) for name, curve in expected.items())
    compact(attempt)
    with django_assert_max_num_queries(6):
        compacted = read_all_series(attempt, max_points=500)
    assert [(view.num_points_total, view.x[-1]) for view in compacted.values()] == [
        (view.num_points_total, view.x[-1]) for view in expected.values()
    ]


# ------------------------------------------------------------------ old runs


def test_old_runs_keep_their_extremes_and_new_ones_everything(alice: User) -> None:
    values = losses()
    old, new = ended(values), ended(values)
    for attempt in (old, new):
        compact(attempt)
    Attempt.objects.filter(pk=old.pk).update(ended_at=timezone.now() - timedelta(days=100))
    assert drop_full_points(timedelta(days=90), by=alice) == 1
    assert drop_full_points(timedelta(days=90), by=alice) == 0
    view = read_curve(old, "train_loss")
    finite = values[np.isfinite(values)]
    shown = np.array(view.y)
    assert (view.level, view.num_points_total) == ("minmaxlttb", NUM_STEPS)
    assert NUM_STEPS / 10 < len(view.x) < NUM_STEPS / 6
    assert (np.nanmax(shown[np.isfinite(shown)]), np.nanmin(shown[np.isfinite(shown)])) == (finite.max(), finite.min())
    assert read_curve(old, "train_loss", x_from=100, x_to=30_000, max_points=100).level == "minmaxlttb"
    assert read_curve(old, "eval_loss").level == "full"  # it is short
    assert len(read_curve(new, "train_loss").x) == NUM_STEPS
    [entry] = AuditEntry.objects.all()
    assert (entry.actor, entry.detail) == (alice, {"days": 90, "runs": 1})


def test_captions_say_that_only_extremes_of_an_old_run_are_kept(alice: User, client: Client) -> None:
    old, new = ended(losses(), owner=alice), ended(losses(), owner=alice)
    for attempt in (old, new):
        compact(attempt)
    Attempt.objects.filter(pk=old.pk).update(ended_at=timezone.now() - timedelta(days=100))
    drop_full_points(timedelta(days=90))
    kept_of_each_16 = len(read_curve(old, "train_loss").x) / (NUM_STEPS / 16)
    assert round(kept_of_each_16) == 2
    sentence = f"Of the old run #{old.job_id} only the lowest and the highest of every 16 points are kept."
    client.force_login(alice)
    for query, is_told in ((f"{old.job_id},{new.job_id}", True), (f"{new.job_id}", False)):
        [figure] = client.get(f"/compare/curves/?jobs={query}").json()["figures"]
        assert (sentence in figure["layout"]["meta"]["caption"]) is is_told
        assert ("zooming in shows more" in figure["layout"]["meta"]["caption"]) is not is_told
    [grouped] = client.get(f"/compare/curves/?jobs={new.job_id},{old.job_id}&group=seed").json()["figures"]
    assert sentence in grouped["layout"]["meta"]["caption"]
    [smoothed] = client.get(f"/compare/curves/?jobs={old.job_id}&smooth=mean").json()["figures"]
    assert smoothed["layout"]["meta"]["remarks"][-2:] == [sentence, "It is smoothed over those that are kept."]
    assert client.get(f"/jobs/{old.job_id}/points/").json()["notes"] == {"train_loss": sentence}
    assert client.get(f"/jobs/{new.job_id}/points/").json()["notes"] == {}


def test_the_command_drops_and_the_history_says_who_did(alice: User, client: Client) -> None:
    attempt = ended(losses())
    compact(attempt)
    Attempt.objects.update(ended_at=timezone.now() - timedelta(days=31))
    out = io.StringIO()
    call_command("drop_points", older_than_days=30, user="alice", stdout=out)
    assert out.getvalue() == "Dropped the single points of 1 runs.\n"
    User.objects.update(is_staff=True)
    client.force_login(User.objects.get(pk=alice.pk))
    assert "dropped single points of 1 runs older than 30 days" in client.get("/fleet/history/").content.decode()


@pytest.mark.parametrize("options", [{"older_than_days": 0}, {"older_than_days": 3, "user": "nobody"}])
def test_the_command_says_what_is_wrong(options: dict[str, Any], db: None) -> None:
    err = io.StringIO()
    with pytest.raises(SystemExit) as caught:
        call_command("drop_points", **options, stderr=err)
    assert caught.value.code == 2
    assert err.getvalue()


def test_the_setting_drops_and_without_it_nothing_is_dropped() -> None:
    attempt = ended(losses())
    compact(attempt)
    Attempt.objects.update(ended_at=timezone.now() - timedelta(days=31))
    Compactor(0).work(is_idle=True)
    assert Attempt.objects.get(pk=attempt.pk).curve_form == CurveForm.COMPACTED
    Compactor(30).work(is_idle=True)
    assert Attempt.objects.get(pk=attempt.pk).curve_form == CurveForm.COARSE
    assert not AuditEntry.objects.exists()


def test_rows_are_written_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "_ROWS_AT_ONCE", 2)
    attempt = ended(losses())
    compact(attempt)
    assert attempt.blocks.filter(series="train_loss").count() == 4
