"""Whether a promised factor was seen: pure functions of measured intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from jobs.contract.claims import Promise
from jobs.statistics import RatioInterval


class ClaimVerdict(StrEnum):
    """What the repeats on one device say of a claim."""

    HOLDS = "holds"
    FAILS = "fails"
    UNDECIDED = "undecided"  # too few repeats, or the interval reaches over what was promised


@dataclass(frozen=True)
class Measured:
    """By what factor a figure fell, with its 99 % interval over repeats."""

    promise: Promise
    factor: float
    low: float
    high: float
    n: int
    verdict: ClaimVerdict


def judge_promise(promise: Promise, interval: RatioInterval | None) -> Measured | None:
    """The promise held against the candidate's ratio to the baseline; None where too few pairs were measured.

    It holds where the whole 99 % interval lies at or beyond what was promised, and fails where it lies short of that. A
    promise of a mere direction fails as well where a tie is shown: an interval around 1 that is narrow.
    """
    if interval is None:
        return None
    factor, low, high = 1 / interval.ratio, 1 / interval.high, 1 / interval.low
    if high < promise.at_least or (promise.at_least == 1 and interval.is_tie):
        verdict = ClaimVerdict.FAILS
    elif low > 1 and low >= promise.at_least:
        verdict = ClaimVerdict.HOLDS
    else:
        verdict = ClaimVerdict.UNDECIDED
    return Measured(promise, factor, low, high, interval.n, verdict)


def verdict_of(measured: Sequence[Measured | None]) -> ClaimVerdict:
    """A claim fails with any of its promises, and holds with all of them."""
    verdicts = [one.verdict if one else ClaimVerdict.UNDECIDED for one in measured]
    if ClaimVerdict.FAILS in verdicts:
        return ClaimVerdict.FAILS
    return ClaimVerdict.HOLDS if set(verdicts) == {ClaimVerdict.HOLDS} else ClaimVerdict.UNDECIDED
