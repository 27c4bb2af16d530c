"""Places on a board: shared where no difference was shown, by the same rule as every tie here."""

import math
import random

from jobs.ranking import Place, paired_values, ratio_to, seed_differences, share_places
from jobs.statistics import repeats_interval


def repeats(*values: float) -> list[tuple[int, float]]:
    return list(enumerate(values))


def places(*groups: list[tuple[int, float]], lower_is_better: bool = True) -> list[int]:
    return [place.rank for place in share_places(groups, lower_is_better=lower_is_better)]


def test_what_differs_beyond_noise_has_places_of_its_own() -> None:
    assert places(repeats(10.0, 10.1, 9.9), repeats(20.0, 20.2, 19.8), repeats(30.0, 30.3, 29.7)) == [1, 2, 3]


def test_what_is_not_shown_to_differ_shares_a_place_and_the_next_place_counts_all_before() -> None:
    fast, alike, slow = repeats(10.0, 10.2, 9.9), repeats(10.1, 10.0, 10.0), repeats(15.0, 15.2, 14.9)
    assert share_places([fast, alike, slow], lower_is_better=True) == [
        Place(1, True),
        Place(1, True),
        Place(3, False),
    ]


def test_a_seed_that_ran_several_times_is_one_difference() -> None:
    assert seed_differences([(0, 3.0), (0, 5.0), (1, 2.0), (2, 1.0)], [(1, 1.5), (0, 1.0)]) == [3.0, 0.5]


def test_more_is_better_where_it_is() -> None:
    assert places(repeats(300.0, 301.0, 299.0), repeats(100.0, 101.0, 99.0), lower_is_better=False) == [1, 2]


def test_repeats_are_paired_by_seed_so_that_what_moves_both_hides_nothing() -> None:
    drift = [1.0, 2.0, 4.0]
    fast = [(seed, 10.0 * d * f) for seed, (d, f) in enumerate(zip(drift, (1.0, 1.001, 0.999), strict=True))]
    slow = [(seed, 10.5 * d) for seed, d in enumerate(drift)]
    assert places(fast, slow) == [1, 2]


def test_single_runs_show_no_difference() -> None:
    assert places(repeats(10.0), repeats(50.0)) == [1, 1]


def test_a_single_run_ahead_does_not_hide_the_differences_behind_it() -> None:
    assert places(repeats(9.0), repeats(10.0, 10.1, 9.9), repeats(20.0, 20.2, 19.8)) == [1, 1, 3]


def test_what_never_reached_the_target_stands_behind_what_did() -> None:
    assert places(repeats(10.0, 11.0), repeats(math.inf, math.inf)) == [1, 2]
    assert ratio_to(repeats(math.inf, 1.0), repeats(1.0, 1.0)) is None


def test_a_seed_that_was_measured_twice_is_paired_twice() -> None:
    assert paired_values([(1, 2.0), (1, 3.0), (2, 9.0)], [(1, 4.0), (1, 5.0), (3, 1.0)]) == [(2.0, 4.0), (3.0, 5.0)]


def test_the_interval_of_repeats_covers_its_95_percent() -> None:
    """In 2,000 simulated boards; the standard error of the share is half a percent."""
    chance = random.Random(7)
    covered = 0
    for _board in range(2000):
        values = [math.exp(chance.gauss(math.log(10.0), 0.05)) for _repeat in range(5)]
        low, high = repeats_interval(values) or (0.0, 0.0)
        covered += low <= 10.0 <= high
    assert 0.93 < covered / 2000 < 0.97


def test_two_of_the_same_share_the_first_place_in_99_of_100_boards() -> None:
    chance = random.Random(11)
    shared = 0
    for _board in range(1000):
        one, other = ([(seed, math.exp(chance.gauss(0.0, 0.05))) for seed in range(5)] for _configuration in range(2))
        ordered = sorted((one, other), key=lambda group: sorted(value for _seed, value in group)[2])
        shared += places(*ordered) == [1, 1]
    assert shared / 1000 > 0.98


def test_an_interval_needs_two_repeats_and_finite_ones() -> None:
    assert repeats_interval([1.0]) is None
    assert repeats_interval([1.0, math.inf]) is None
    low, high = repeats_interval([-1.0, 1.0]) or (0.0, 0.0)
    assert low < 0 < high
