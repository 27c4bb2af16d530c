"""How close a configuration that is measured again must come to be verified, and how many seeds that takes.

Pure functions. An interval that merely contains 1 verifies nothing: of two pairs it is so wide that it agrees with
nearly everything. Verified is what is shown to be close: the whole interval lies within a few percent, either way.
"""

import math
from collections.abc import Sequence

from jobs.board_runs import BoardRun
from jobs.statistics import TIE_CONFIDENCE, RatioInterval, stdev, student_t

WITHIN = 0.05  # a step time that differs by less is the same for whoever chooses a configuration
LEAST_SEEDS, MOST_SEEDS = 5, 15
_LIKELY = 0.80  # two-sided, so that nine of ten that are as they were are found so


def is_verified(times: RatioInterval) -> bool:
    """Whether the step times, new to old, are shown to differ by less than what matters."""
    return times.low > 1 / (1 + WITHIN) and times.high < 1 + WITHIN


def newest_by_seed(runs: Sequence[BoardRun]) -> list[BoardRun]:
    """One run of each seed, the newest, in the order of their ends."""
    newest = {run.seed: run for run in runs}
    return sorted(newest.values(), key=lambda run: run.ended_at)


def seeds_wanted(runs: Sequence[BoardRun]) -> int:
    """How many seeds are likely to verify a configuration that is as noisy as these runs of it, 5 to 15.

    Of fewer than five nobody can tell how noisy they are.
    """
    times_ms = [run.steady_step_time_ms for run in newest_by_seed(runs)]
    logs = [math.log(time_ms) for time_ms in times_ms if time_ms]
    noise = math.sqrt(2) * stdev(logs) if len(logs) >= LEAST_SEEDS else 0.0  # of a ratio of two such runs
    return next((n for n in range(LEAST_SEEDS, MOST_SEEDS) if _reach(n, noise) < math.log1p(WITHIN)), MOST_SEEDS)


def _reach(n: int, noise: float) -> float:
    """How far the interval of `n` pairs is likely to reach from 1, where nothing has changed."""
    return (student_t(TIE_CONFIDENCE, n - 1) + student_t(_LIKELY, n - 1)) * noise / math.sqrt(n)
