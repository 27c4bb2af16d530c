"""How sure a ratio is: a t-interval on paired log ratios over repeats, and when there are repeats enough."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from scipy.stats import t as student_t

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A ratio (geometric mean over repeats) and where it lies with the confidence that was asked for."""

    ratio: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """How far the upper end lies above the ratio, as a fraction of it: 0.02 is 2 %."""
        return self.high / self.ratio - 1


def ratio_interval(ratios: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """The interval of the ratios' geometric mean; one ratio alone says nothing of its spread, so it spans all."""
    logs = [math.log(ratio) for ratio in ratios]
    middle = mean(logs)
    if len(logs) < 2:
        return Interval(math.exp(middle), 0.0, math.inf)
    quantile = float(student_t.ppf((1 + confidence) / 2, len(logs) - 1))
    reach = quantile * stdev(logs) / math.sqrt(len(logs))
    return Interval(math.exp(middle), math.exp(middle - reach), math.exp(middle + reach))


@dataclass(frozen=True)
class Stopping:
    """Repeats are added until the interval is narrow enough, or there are `at_most`."""

    at_least: int = 5
    at_most: int = 15
    half_width: float = 0.02

    def is_enough(self, ratios: Sequence[float]) -> bool:
        """Whether to stop after these repeats."""
        if len(ratios) < self.at_least:
            return False
        return len(ratios) >= self.at_most or self.is_narrow(ratio_interval(ratios))

    def is_narrow(self, interval: Interval) -> bool:
        """Whether a claim may be made."""
        return interval.half_width < self.half_width


def judge(interval: Interval, aim: float, stopping: Stopping) -> str:
    """What a row may say of its aim; nothing where the interval stayed wide."""
    if not stopping.is_narrow(interval):
        return "too noisy here"
    return f"{aim:g} reached" if interval.ratio >= aim else f"{aim:g} missed"


def judge_against_one(interval: Interval) -> str:
    """Whether a ratio of speeds differs from 1 beyond noise."""
    if interval.low > 1:
        return "faster"
    return "slower" if interval.high < 1 else "no difference beyond noise"
