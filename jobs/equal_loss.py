"""The equal-loss gate: two one-sided tests of paired differences against a margin that was fixed beforehand.

"Not significantly different" is not "equal": equal means that the 90 % interval of the mean difference, paired by seed,
lies within the margin (Schuirmann 1987), so that a difference as large as the margin passes in at most 5 % of tries.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean, median, stdev

from jobs.statistics import student_t

# The share of a pilot's loss that the margin is, where nobody chose one.
MARGIN_SHARE = 0.01
# The first run of a work fixes its margin, whatever it tried. Where it ended far worse than what is the baseline now,
# that would pass what is plainly worse: it counts up to this share of the baseline's loss.
MOST_SHARE = 0.02
_TWO_SIDED_CONFIDENCE = 0.90  # two one-sided tests at 5 % each


class LossVerdict(StrEnum):
    """What paired losses say of a configuration beside its baseline; only the first two let it rank."""

    EQUAL = "equal"
    BETTER = "better"
    WORSE = "worse"
    INSUFFICIENT = "insufficient"  # too few pairs, or too noisy to tell

    @property
    def may_rank(self) -> bool:
        """Whether a configuration with this verdict may be called faster."""
        return self in (LossVerdict.EQUAL, LossVerdict.BETTER)


@dataclass(frozen=True)
class LossComparison:
    """The mean difference of a loss (candidate less baseline, below 0 is better) with its 90 % interval."""

    difference: float
    low: float
    high: float
    margin: float
    n: int
    verdict: LossVerdict
    num_diverged: int = 0  # runs that are not among the `n`, for they diverged where the baseline did not


def compare_losses(differences: Sequence[float], margin: float, num_diverged: int = 0) -> LossComparison | None:
    """The verdict on differences of final evaluation losses, one for each seed; None where there are none.

    A single pair is insufficient evidence, whatever it shows. So is what is left of a configuration of which runs
    diverged where the baseline's did not: those that came through were chosen by their loss. Raises ValueError for a
    margin that is not positive or a difference that is not finite.
    """
    if not margin > 0 or not all(map(math.isfinite, differences)):
        raise ValueError("the margin must be positive and every difference finite")
    if not differences:
        return None
    mean, n = fmean(differences), len(differences)
    if n == 1:
        return LossComparison(mean, -math.inf, math.inf, margin, n, LossVerdict.INSUFFICIENT, num_diverged)
    reach = student_t(_TWO_SIDED_CONFIDENCE, n - 1) * stdev(differences) / math.sqrt(n)
    low, high = mean - reach, mean + reach
    return LossComparison(mean, low, high, margin, n, _verdict(low, high, margin, num_diverged), num_diverged)


def capped_margin(margin: float, baseline_losses: Sequence[float]) -> float:
    """A work's margin as it counts beside this baseline: up to `MOST_SHARE` of its median loss."""
    known = [abs(loss) for loss in baseline_losses if math.isfinite(loss)]
    return min(margin, MOST_SHARE * median(known) or margin) if known else margin


def with_margin(comparison: LossComparison, margin: float) -> LossComparison:
    """The same differences held against another margin. Raises ValueError where it is not positive."""
    if not margin > 0:
        raise ValueError("the margin must be positive")
    verdict = _verdict(comparison.low, comparison.high, margin, comparison.num_diverged)
    return replace(comparison, margin=margin, verdict=verdict)


def _verdict(low: float, high: float, margin: float, num_diverged: int) -> LossVerdict:
    if low > 0 and high >= margin:
        return LossVerdict.WORSE
    if num_diverged:
        return LossVerdict.INSUFFICIENT
    if -margin < low and high < margin:
        return LossVerdict.EQUAL
    return LossVerdict.BETTER if high < 0 else LossVerdict.INSUFFICIENT
