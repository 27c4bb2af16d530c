"""The gate's error rates, on simulated runs of known difference, and its borders."""

import numpy as np
import pytest

from jobs.equal_loss import LossVerdict, capped_margin, compare_losses, with_margin
from jobs.ranking import seed_differences

MARGIN = 0.0015  # 1 % of a loss of 0.15, as on digits
PAIRED_SD = 0.0003  # of bf16 less fp32 on digits, over seeds
SEED_SD = 0.0123  # of the loss itself on digits, over seeds
TRIES = 4000


def verdicts(difference, sd, n=5, seed=0):
    draws = np.random.default_rng(seed).normal(difference, sd, size=(TRIES, n))
    return [compare_losses(row.tolist(), MARGIN).verdict for row in draws]


def share(found, verdict):
    return found.count(verdict) / len(found)


@pytest.mark.parametrize("sd", [PAIRED_SD, MARGIN, 4 * MARGIN])
def test_what_differs_by_the_margin_passes_as_equal_in_at_most_a_twentieth(sd):
    error = 3 * (0.05 * 0.95 / TRIES) ** 0.5
    assert share(verdicts(MARGIN, sd), LossVerdict.EQUAL) <= 0.05 + error


def test_equal_losses_are_found_equal_with_five_seeds():
    assert share(verdicts(0.0, PAIRED_SD), LossVerdict.EQUAL) >= 0.8


@pytest.mark.parametrize(("difference", "least", "most"), [(0.0, 0.8, 1.0), (MARGIN, 0.0, 0.05)])
def test_seeds_that_differ_as_on_digits_are_told_apart_from_configurations_by_pairing(difference, least, most):
    """Losses as a board holds them: a seed moves both alike, forty times further than they differ by themselves."""
    chance = np.random.default_rng(2)
    found = []
    for _board in range(TRIES):
        baseline = 0.15 + chance.normal(0, SEED_SD, size=5)
        candidate = baseline + chance.normal(difference, PAIRED_SD, size=5)
        pairs = seed_differences(list(enumerate(candidate)), list(enumerate(baseline))[::-1])
        found.append(compare_losses(pairs, MARGIN).verdict)
    error = 3 * (0.05 * 0.95 / TRIES) ** 0.5
    assert least <= share(found, LossVerdict.EQUAL) <= most + error


def test_a_margin_that_a_bad_first_run_fixed_counts_up_to_two_percent_of_the_baselines_loss():
    assert capped_margin(0.023, [0.07, 0.08, 0.09]) == pytest.approx(0.0016)
    assert capped_margin(MARGIN, [0.15, 0.16]) == MARGIN
    assert capped_margin(MARGIN, []) == MARGIN
    assert capped_margin(MARGIN, [0.0, float("nan")]) == MARGIN


def test_what_is_worse_by_far_is_worse_and_what_is_better_by_far_better():
    assert set(verdicts(10 * MARGIN, PAIRED_SD)) == {LossVerdict.WORSE}
    assert set(verdicts(-10 * MARGIN, PAIRED_SD)) == {LossVerdict.BETTER}


def test_noise_is_no_evidence():
    assert share(verdicts(0.0, 20 * MARGIN), LossVerdict.EQUAL) <= 0.05


def test_one_seed_is_insufficient_however_equal():
    assert compare_losses([0.0], MARGIN).verdict is LossVerdict.INSUFFICIENT


def test_differences_without_variance_are_held_against_the_margin():
    assert compare_losses([0.0] * 3, MARGIN).verdict is LossVerdict.EQUAL
    assert compare_losses([2 * MARGIN] * 3, MARGIN).verdict is LossVerdict.WORSE


def test_what_diverged_has_no_verdict_here():
    assert compare_losses([], MARGIN) is None
    with pytest.raises(ValueError, match="finite"):
        compare_losses([0.1, float("nan")], MARGIN)
    with pytest.raises(ValueError, match="positive"):
        compare_losses([0.1, 0.2], 0.0)


def test_what_came_through_where_others_diverged_is_neither_equal_nor_better():
    """Who diverges on one seed in three and is equal on the rest would pass by its survivors alone."""
    survivors = compare_losses([0.0, 0.0001, -0.0001], MARGIN, num_diverged=2)
    assert survivors.verdict is LossVerdict.INSUFFICIENT
    assert compare_losses([-10 * MARGIN] * 3, MARGIN, num_diverged=1).verdict is LossVerdict.INSUFFICIENT
    assert compare_losses([10 * MARGIN] * 3, MARGIN, num_diverged=1).verdict is LossVerdict.WORSE
    assert with_margin(survivors, 100.0).verdict is LossVerdict.INSUFFICIENT
