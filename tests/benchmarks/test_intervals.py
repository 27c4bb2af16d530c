"""Intervals and the stopping rule, against closed forms and tables that do not come from the same code."""

import math
from statistics import NormalDist

import pytest

from benchmarks.intervals import Interval, Stopping, judge, judge_against_one, ratio_interval

# Student's t, 97.5 %: for one degree of freedom it is Cauchy's tan, for two a square root, the others from tables.
T_975 = {1: math.tan(0.475 * math.pi), 2: 0.95 / math.sqrt(2 * 0.975 * 0.025), 4: 2.776445, 14: 2.144787}


def reach(interval: Interval) -> float:
    return math.log(interval.high / interval.ratio)


def spread_ratios(num_repeats: int, spread: float) -> list[float]:
    """Geometric mean 1; an odd number of repeats has one right in the middle."""
    signs = [(-1) ** number for number in range(num_repeats - num_repeats % 2)] + [0] * (num_repeats % 2)
    return [math.exp(sign * spread) for sign in signs]


@pytest.mark.parametrize("num_repeats", [2, 3, 5, 15])
def test_the_interval_is_students_t_on_log_ratios(num_repeats):
    interval = ratio_interval(spread_ratios(num_repeats, 0.03))
    num_off = num_repeats - num_repeats % 2
    standard_deviation = 0.03 * math.sqrt(num_off / (num_repeats - 1))
    expected = T_975[num_repeats - 1] * standard_deviation / math.sqrt(num_repeats)
    assert interval.ratio == pytest.approx(1)
    assert reach(interval) == pytest.approx(expected, rel=1e-6)
    assert interval.low * interval.high == pytest.approx(interval.ratio**2)


def test_turning_all_ratios_round_turns_the_interval_round():
    ratios = [1.02, 1.1, 0.97, 1.05]
    there, back = ratio_interval(ratios), ratio_interval([1 / ratio for ratio in ratios])
    assert (back.ratio, back.low, back.high) == pytest.approx((1 / there.ratio, 1 / there.high, 1 / there.low))


def test_many_repeats_come_near_the_normal_distribution():
    interval = ratio_interval(spread_ratios(10_000, 0.03))
    assert reach(interval) == pytest.approx(NormalDist().inv_cdf(0.975) * 0.03 / 100, rel=1e-3)


def test_one_repeat_alone_is_no_evidence():
    interval = ratio_interval([1.5])
    assert (interval.ratio, interval.low, interval.high) == (pytest.approx(1.5), 0, math.inf)
    assert not Stopping().is_narrow(interval)


def test_repeats_are_added_until_the_interval_is_narrow():
    stopping = Stopping(at_least=5, at_most=15, half_width=0.02)
    quiet, noisy = spread_ratios(20, 0.01), spread_ratios(20, 0.2)
    assert [stopping.is_enough(quiet[:number]) for number in (0, 4, 5)] == [False, False, True]
    assert [stopping.is_enough(noisy[:number]) for number in (5, 14, 15)] == [False, False, True]


@pytest.mark.parametrize(
    ("interval", "words"),
    [
        (Interval(0.99, 0.98, 1.0), "0.98 reached"),
        (Interval(0.97, 0.96, 0.98), "0.98 missed"),
        (Interval(1.20, 1.10, 1.31), "too noisy here"),
        (Interval(0.50, 0.40, 0.63), "too noisy here"),
    ],
)
def test_a_wide_interval_claims_nothing(interval, words):
    assert judge(interval, 0.98, Stopping()) == words


@pytest.mark.parametrize(
    ("interval", "words"),
    [
        (Interval(1.1, 1.01, 1.2), "faster"),
        (Interval(0.9, 0.8, 0.99), "slower"),
        (Interval(1.0, 0.9, 1.1), "no difference beyond noise"),
    ],
)
def test_an_interval_on_one_side_of_one_is_a_difference(interval, words):
    assert judge_against_one(interval) == words
