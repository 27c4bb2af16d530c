import math

import numpy as np
import pytest

from jobs.curves import Curve
from jobs.models import Attempt
from jobs.selectors.curves import (
    MIN_POINTS,
    new_chunks,
    read_curve,
    read_curves,
    series_names,
    shown_attempts,
    thin,
    view_curve,
)
from tests.jobs.factories import make_job, make_worker, points, record, start


@pytest.fixture
def attempt(db: None) -> Attempt:
    """Three chunks of training loss, 10 steps each, and one point of evaluation loss."""
    attempt = start(make_job())
    for first in (1, 11, 21):
        steps = range(first, first + 10)
        record(attempt, points(steps, train_loss=[100 - step for step in steps]))
    record(attempt, points([30], eval_loss=[7]))
    return attempt


def test_a_curve_is_read_whole_and_in_order(attempt: Attempt) -> None:
    curve = read_curve(attempt, "train_loss")
    assert curve.x == list(range(1, 31))
    assert curve.y == [100.0 - step for step in range(1, 31)]
    assert curve.wall_s == pytest.approx([0.01 * step for step in range(1, 31)])
    assert (curve.level, curve.num_points_total) == ("full", 30)


def test_a_range_includes_both_its_ends(attempt: Attempt) -> None:
    curve = read_curve(attempt, "train_loss", x_from=10, x_to=12)
    assert (curve.x, curve.num_points_total) == ([10, 11, 12], 3)


def test_chunks_outside_the_range_are_not_read(attempt: Attempt) -> None:
    attempt.chunks.filter(sequence__in=[0, 2, 3]).update(payload=b"unreadable")
    assert read_curve(attempt, "train_loss", x_from=12, x_to=15).x == [12, 13, 14, 15]


def test_a_series_without_points_is_empty(attempt: Attempt) -> None:
    assert read_curve(attempt, "nothing").x == []


def test_series_are_named_from_the_chunks_heads(attempt: Attempt, django_assert_num_queries: object) -> None:
    with django_assert_num_queries(2):  # type: ignore[operator]
        assert series_names(attempt) == ["train_loss", "eval_loss"]


def test_several_curves_are_as_many_queries_as_one(attempt: Attempt, django_assert_num_queries: object) -> None:
    other = start(make_job(), make_worker("other"))
    record(other, points([1], train_loss=[math.inf]))
    with django_assert_num_queries(2):  # type: ignore[operator]
        curves = read_curves([attempt, other], "train_loss")
    assert len(curves[attempt.pk].x) == 30
    assert curves[other.pk].y == [math.inf]


def test_a_job_shows_its_last_attempt(attempt: Attempt) -> None:
    attempt.job.refresh_from_db()
    assert shown_attempts(attempt.job) == [attempt]
    assert shown_attempts(make_job()) == []


def curve_of(values: np.ndarray) -> Curve:
    return Curve(np.arange(1, len(values) + 1), np.arange(len(values)) * 0.1, values)


def test_a_long_curve_is_thinned_to_stored_points() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=100_000)
    view = view_curve(curve_of(values), "train_loss", 1000)
    assert (view.level, view.num_points_total) == ("minmaxlttb", 100_000)
    assert 900 <= len(view.x) <= 1000
    assert view.y == values[np.array(view.x) - 1].tolist()
    assert view.x == sorted(set(view.x))
    assert (view.x[0], view.x[-1]) == (1, 100_000)


@pytest.mark.parametrize("max_points", [MIN_POINTS, 10, 100, 1000])
@pytest.mark.parametrize("spike", [-50.0, 50.0])
def test_a_spike_keeps_its_height(max_points: int, spike: float) -> None:
    rng = np.random.default_rng(1)
    for place in rng.integers(0, 50_000, size=20):
        values = rng.normal(size=50_000)
        values[place] = spike
        view = view_curve(curve_of(values), "train_loss", max_points)
        assert spike in view.y
        assert len(view.y) <= max_points


def test_breaks_stay_breaks() -> None:
    values = np.linspace(5, 1, 10_000)
    values[5000], values[6000:7000], values[8000] = math.nan, math.nan, math.inf
    view = view_curve(curve_of(values), "train_loss", 100)
    broken = [x - 1 for x, y in zip(view.x, view.y, strict=True) if not math.isfinite(y)]
    assert broken == [5000, 6000, 6999, 8000]


def test_a_curve_of_nothing_but_breaks_is_its_ends() -> None:
    assert thin(np.full(1000, np.nan), 10).tolist() == [0, 999]


def test_a_short_curve_is_left_as_it_is() -> None:
    assert view_curve(curve_of(np.arange(10.0)), "train_loss", 10).level == "full"


def test_fewer_points_than_make_a_shape_are_refused() -> None:
    with pytest.raises(ValueError, match="at least"):
        view_curve(curve_of(np.arange(10.0)), "train_loss", MIN_POINTS - 1)


def test_new_chunks_of_many_attempts_are_one_query(attempt: Attempt, django_assert_num_queries: object) -> None:
    other = start(make_job(), make_worker("other"))
    record(other, points([1, 2], train_loss=[3, 2]))
    with django_assert_num_queries(1):  # type: ignore[operator]
        chunks = new_chunks({attempt.pk: 1, other.pk: -1})
    assert [(chunk.attempt_id, chunk.sequence) for chunk in chunks] == [(attempt.pk, 2), (attempt.pk, 3), (other.pk, 0)]
    assert chunks[2].frames[0].series["train_loss"].tolist() == [3, 2]


def test_where_nothing_is_watched_nothing_is_asked(django_assert_num_queries: object, db: None) -> None:
    with django_assert_num_queries(0):  # type: ignore[operator]
        assert new_chunks({}) == []


def test_hundreds_of_attempts_can_be_watched(db: None) -> None:
    assert new_chunks(dict.fromkeys(range(1, 901), 0)) == []
