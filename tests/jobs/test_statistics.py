"""Bands, Student's t and verdicts, against tables, closed forms and SciPy."""

import math
import random
from statistics import NormalDist

import pytest
from scipy.stats import t as scipy_t
from scipy.stats import ttest_1samp

from jobs.contract.plan import MOST_REPEATS
from jobs.services.study_repeats import ROUND
from jobs.statistics import (
    NARROW_HALF_WIDTH,
    Band,
    RatioInterval,
    Verdict,
    band_factor,
    judge,
    ratio_interval,
    repeats_interval,
    spread_of,
    student_t,
)

# Two-sided 95 % and 99 % from the printed tables.
TABLE = {1: (12.706205, 63.656741), 2: (4.302653, 9.924843), 4: (2.776445, 4.604095), 14: (2.144787, 2.976843)}


@pytest.mark.parametrize("degrees", TABLE)
def test_quantiles_are_the_printed_ones(degrees: int) -> None:
    assert (student_t(0.95, degrees), student_t(0.99, degrees)) == pytest.approx(TABLE[degrees], rel=1e-6)


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 5, 7, 10, 31, 199, 1000])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99, 0.999])
def test_quantiles_agree_with_scipy(confidence: float, degrees: int) -> None:
    assert student_t(confidence, degrees) == pytest.approx(float(scipy_t.ppf((1 + confidence) / 2, degrees)), rel=1e-9)


def test_many_degrees_come_near_the_normal_distribution() -> None:
    assert student_t(0.95, 20_000) == pytest.approx(NormalDist().inv_cdf(0.975), rel=1e-3)


@pytest.mark.parametrize(("confidence", "degrees"), [(0, 3), (1, 3), (0.95, 0)])
def test_what_no_quantile_is_defined_for_is_refused(confidence: float, degrees: int) -> None:
    with pytest.raises(ValueError, match="confidence must lie between 0 and 1"):
        student_t(confidence, degrees)


@pytest.mark.parametrize(
    ("band", "reach"),
    [
        (Band.STANDARD_DEVIATION, 1.0),
        (Band.STANDARD_ERROR, 1 / math.sqrt(3)),
        (Band.INTERVAL, 4.302653 / math.sqrt(3)),
        (Band.RANGE, 1.0),
    ],
)
def test_bands_around_three_repeats(band: Band, reach: float) -> None:
    spread = spread_of([1.0, 2.0, 3.0], band)
    assert spread is not None
    assert (spread.mean, spread.low, spread.high, spread.n) == pytest.approx((2, 2 - reach, 2 + reach, 3), rel=1e-6)


def test_one_repeat_has_no_band_and_none_has_nothing() -> None:
    one = spread_of([5.0], Band.INTERVAL)
    assert one is not None
    assert (one.mean, one.low, one.high) == (5, 5, 5)
    assert spread_of([], Band.RANGE) is None
    assert band_factor(Band.STANDARD_DEVIATION, 1) == 0


def test_the_interval_is_that_of_a_t_test_on_paired_logs() -> None:
    ratios = [0.91, 0.88, 0.93, 0.9, 0.87]
    found = ratio_interval(ratios)
    test = ttest_1samp([math.log(ratio) for ratio in ratios], 0).confidence_interval(0.99)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((math.exp(test.low), math.exp(test.high)))
    assert found.ratio == pytest.approx(math.prod(ratios) ** (1 / 5))


@pytest.mark.parametrize("ratios", [[1e-200, 1e200], [1e150, 1e300], [1e-300, 1e-150], [1e-320, 1e-310]])
def test_absurd_ratios_have_ends_that_can_be_written_down_and_divided_by(ratios: list[float]) -> None:
    found = ratio_interval(ratios)
    assert found
    ends = [found.low, found.high, *found.likely, found.ratio, 1 + found.half_width]
    assert all(0 < end < math.inf and 0 < 1 / end < math.inf for end in ends)
    assert found.low <= found.likely[0] <= found.ratio <= found.likely[1] <= found.high
    low, high = repeats_interval(ratios) or (0.0, 0.0)
    assert 0 < low < high < math.inf


def test_turning_all_ratios_round_turns_the_interval_round() -> None:
    ratios = [1.02, 1.1, 0.97, 1.05]
    there, back = ratio_interval(ratios), ratio_interval([1 / ratio for ratio in ratios])
    assert there
    assert back
    assert (back.ratio, back.low, back.high) == pytest.approx((1 / there.ratio, 1 / there.high, 1 / there.low))


@pytest.mark.parametrize("ratios", [[], [0.5], [0.5, 0.0], [0.5, math.nan], [0.5, math.inf], [1.0, -1.0]])
def test_too_few_or_impossible_ratios_have_no_interval(ratios: list[float]) -> None:
    assert ratio_interval(ratios) is None
    assert judge(ratio_interval(ratios), lower_is_better=True) is Verdict.TOO_FEW


@pytest.mark.parametrize(
    ("ratios", "lower_is_better", "verdict"),
    [
        ([0.8, 0.81, 0.79, 0.8, 0.8], True, Verdict.BETTER),
        ([0.8, 0.81, 0.79, 0.8, 0.8], False, Verdict.WORSE),
        ([0.8, 0.81, 0.79, 0.8, 0.8], None, Verdict.DIFFERENT),
        ([1.001, 0.999, 1.002, 0.998, 1.0], True, Verdict.TIE),
        ([1.2, 0.8, 1.1, 0.9, 1.0], True, Verdict.TOO_NOISY),
        ([1.0, 1.0], True, Verdict.TIE),
        ([0.9, 0.9], True, Verdict.BETTER),
    ],
)
def test_a_verdict_needs_an_interval_on_one_side_of_one(
    ratios: list[float], lower_is_better: bool | None, verdict: Verdict
) -> None:
    assert judge(ratio_interval(ratios), lower_is_better=lower_is_better) is verdict


def test_a_difference_that_95_percent_would_claim_is_a_tie_at_99() -> None:
    ratios = [0.994, 0.999, 0.992, 0.997, 0.998]
    at_95 = ttest_1samp([math.log(ratio) for ratio in ratios], 0).confidence_interval(0.95)
    assert at_95.high < 0
    assert judge(ratio_interval(ratios), lower_is_better=True) is Verdict.TIE


def test_a_difference_that_is_likely_and_would_matter_is_no_tie_however_narrow() -> None:
    """Three repeats, much like those of a planted slowdown by 5 %: the 99 % interval just reaches 1."""
    interval = ratio_interval([1.0255, 1.0323, 1.0390])
    assert interval
    assert interval.contains_one
    assert interval.half_width < NARROW_HALF_WIDTH
    assert judge(interval, lower_is_better=True) is Verdict.TOO_NOISY
    assert not interval.is_sure


@pytest.mark.parametrize(
    ("ratios", "is_sure"),
    [
        ([1.001, 0.999, 1.002, 0.998, 1.0], True),
        ([0.8, 0.801, 0.799, 0.8, 0.8], True),
        ([0.8, 0.85, 0.75, 0.82, 0.78], False),  # better beyond noise, but by how much is not known within 2 %
        ([1.2, 0.8, 1.1, 0.9, 1.0], False),
    ],
)
def test_more_repeats_are_asked_for_until_the_ratio_is_known_and_a_verdict_shown(
    ratios: list[float], is_sure: bool
) -> None:
    interval = ratio_interval(ratios)
    assert interval
    assert interval.is_sure is is_sure


def study_until_sure(chance: random.Random, ratio: float, sd: float, first: int) -> RatioInterval:
    """What a study that adds repeats ends with, looking after every round as it does."""
    ratios: list[float] = []
    while True:
        more = min(ROUND, MOST_REPEATS - len(ratios)) if ratios else first
        ratios += [ratio * math.exp(chance.gauss(0, sd)) for _repeat in range(more)]
        interval = ratio_interval(ratios, until_sure=True)
        assert interval
        if interval.is_sure or len(ratios) == MOST_REPEATS:
            return interval


@pytest.mark.parametrize("first", [3, 5])
@pytest.mark.parametrize("ratio", [1.0, 0.9])
def test_intervals_cover_95_percent_also_where_repeats_are_added_until_it_is_sure(ratio: float, first: int) -> None:
    """At the noise where a study stops most often by chance; with plain quantiles it was 90 % at a ratio of 0.9."""
    num_studies, chance = 600, random.Random(17)
    for sd in (0.02, 0.03, 0.04):
        found = [study_until_sure(chance, ratio, sd, first) for _study in range(num_studies)]
        covered = [low <= ratio <= high for low, high in (one.likely for one in found)]
        assert sum(covered) / num_studies >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / num_studies)
        if ratio == 1:
            different = sum(not one.contains_one for one in found) / num_studies
            assert different <= 0.01 + 3 * math.sqrt(0.01 * 0.99 / num_studies)
