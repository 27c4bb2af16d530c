"""When a loss has reached a target: at the first crossing after which it stays there."""

import numpy as np
import pytest

from jobs.curves import Curve
from jobs.loss_course import course_of, target_of, thinned, time_to


def curve(values: list[float] | np.ndarray) -> Curve:
    array = np.asarray(values, dtype=np.float64)
    return Curve(np.arange(1, len(array) + 1), np.arange(1, len(array) + 1) * 0.5, array)


def test_the_first_crossing_counts() -> None:
    course = course_of(curve([4.0, 3.0, 2.0, 1.0]))
    assert time_to(course, 2.5) == 1.5
    assert time_to(course, 1.0) == 2.0
    assert time_to(course, 0.5) is None


def test_a_single_lucky_batch_is_no_crossing() -> None:
    values = np.full(200, 3.0)
    values[50] = 0.1
    values[120:] = 1.0
    course = course_of(curve(values))
    reached = time_to(course, 1.0)
    assert reached is not None
    assert 60.0 < reached <= 65.0


def test_a_level_that_it_does_not_hold_is_no_crossing() -> None:
    values = np.full(200, 3.0)
    values[50:55] = 0.5  # half a window
    assert time_to(course_of(curve(values)), 1.0) is None


def test_what_is_not_a_number_is_never_below_a_target() -> None:
    course = course_of(curve([3.0, float("nan"), 2.0, 1.0]))
    assert time_to(course, 2.0) == 1.5


def test_a_curve_of_less_than_two_points_tells_nothing() -> None:
    assert course_of(curve([])) == []
    assert course_of(curve([1.0])) == []


def test_the_target_lies_nine_tenths_down_and_is_none_where_nothing_fell() -> None:
    assert target_of(course_of(curve([11.0, 6.0, 1.0]))) == pytest.approx(2.0)
    assert target_of(course_of(curve([1.0, 1.0, 1.0]))) is None


def test_a_thinned_course_never_tells_of_an_earlier_crossing() -> None:
    course = course_of(curve(np.linspace(10.0, 1.0, 3000)))
    few = thinned(course)
    assert len(few) < len(course)
    assert (few[0], few[-1]) == (course[0], course[-1])
    for target in (9.0, 5.0, 1.5):
        late, exact = time_to(few, target), time_to(course, target)
        assert late is not None
        assert exact is not None
        assert late >= exact
