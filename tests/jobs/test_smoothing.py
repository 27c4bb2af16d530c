"""Each way of smoothing against the plain loop that defines it."""

import math

import numpy as np
import pytest

from jobs.smoothing import Smoothing, smooth

NOISE = np.random.default_rng(3).normal(size=1000) + np.linspace(5, 1, 1000)


def plain_exponential(values: list[float], weight: float) -> list[float]:
    state, out, count = 0.0, [], 0
    for value in values:
        state, count = weight * state + (1 - weight) * value, count + 1
        out.append(state / (1 - weight**count))
    return out


@pytest.mark.parametrize("weight", [0.0, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("length", [1, 2, 256, 257, 1000])
def test_the_exponential_mean_is_adams(weight: float, length: int) -> None:
    values = NOISE[:length]
    assert smooth(values, Smoothing.EXPONENTIAL, weight) == pytest.approx(plain_exponential(values.tolist(), weight))


@pytest.mark.parametrize("width", [1, 2, 20, 5000])
def test_the_running_mean_is_that_of_the_last_points(width: int) -> None:
    expected = [NOISE[max(0, i + 1 - width) : i + 1].mean() for i in range(len(NOISE))]
    assert smooth(NOISE, Smoothing.RUNNING_MEAN, width) == pytest.approx(expected)


@pytest.mark.parametrize("sigma", [0.5, 3.0, 40.0, 900.0])
def test_the_gaussian_weighs_by_distance_and_is_renormalised_at_the_ends(sigma: float) -> None:
    places = np.arange(len(NOISE))
    distance = np.abs(places[:, None] - places)
    weights = np.where(distance <= math.ceil(4 * sigma), np.exp(-0.5 * (distance / sigma) ** 2), 0)
    assert smooth(NOISE, Smoothing.GAUSSIAN, sigma) == pytest.approx(weights @ NOISE / weights.sum(axis=1))


@pytest.mark.parametrize("how", [Smoothing.EXPONENTIAL, Smoothing.GAUSSIAN, Smoothing.RUNNING_MEAN])
def test_what_is_constant_stays_and_what_is_not_finite_breaks_the_line_only_where_it_is(how: Smoothing) -> None:
    values = np.full(600, 7.0)
    values[[0, 300]] = math.nan, math.inf
    smoothed = smooth(values, how, 0.9 if how is Smoothing.EXPONENTIAL else 30)
    assert np.isnan(smoothed[[0, 300]]).all()
    assert np.delete(smoothed, [0, 300]) == pytest.approx(7.0)


@pytest.mark.parametrize("how", list(Smoothing))
def test_nothing_stays_nothing_and_one_point_itself(how: Smoothing) -> None:
    assert smooth(np.empty(0), how, 0.9).size == 0
    assert smooth(np.array([2.5]), how, 0.9) == pytest.approx([2.5])


def test_no_smoothing_gives_the_values_back() -> None:
    assert smooth(NOISE, Smoothing.NONE, 0) is NOISE


def test_a_running_mean_is_itself_again_behind_an_enormous_value() -> None:
    values = np.ones(100)
    values[50] = 1e25
    smoothed = smooth(values, Smoothing.RUNNING_MEAN, 7)
    assert (smoothed[:50] == 1).all()
    assert (smoothed[57:] == 1).all()
