"""Fastest that fits: which configurations of a space to run next, so that few runs find the fastest.

Pure functions of what has been measured; nothing is remembered between calls, so that a restart loses nothing.

A search has two parts. Screening runs are short: first the base and each value alone, then what the sampler proposes
(`jobs.search_sampler`, with optuna), then by successive halving repeats for ever fewer of the fastest. The finalists
are then run at full length beside the base, where the equal-loss gate decides.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from jobs.search_points import Point, Space, Trial

SHARE = 0.2  # of the full grid's device time that a search may take
BATCH = 4  # proposals in one round: what is learned from them guides the next
_EXPLORE_SHARE = 0.7  # of the screening runs; the rest are repeats for the fastest
_FIRST_SHARE = 0.5  # of the screening runs: for the base and each value alone
_REDUCTION = 3  # each further repeat is for a third of those that had the one before
_MOST_REPEATS = 4  # in screening


@dataclass(frozen=True)
class Costs:
    """What runs cost, in full runs: the share of a full one that a screening run takes."""

    num_repeats: int  # of a full run, in the grid as in the finals
    short_run: float
    num_finalists: int = 1

    def grid(self, space: Space) -> float:
        """The full grid."""
        return float(space.num_points * self.num_repeats)

    def finals(self) -> float:
        """The finalists and the base at full length."""
        return float((1 + self.num_finalists) * self.num_repeats)

    def num_screening_runs(self, space: Space) -> int:
        """How many short runs are left of the share of the full grid once the finals are paid for."""
        return max(0, math.floor((SHARE * self.grid(space) - self.finals()) / self.short_run))


def least_screening_runs(space: Space) -> int:
    """With fewer a search would be a guess: the base, and as many proposals as there are axes."""
    return 2 + 2 * len(space.axes)


def next_batch(space: Space, trials: Sequence[Trial], num_runs: int, seed: int) -> list[Point]:
    """The points to run next, once each; empty once screening is over.

    `num_runs` is how many screening runs there may be in all. Points that turn out to be refused are told as trials
    that are out, and asked for again: they cost nothing.
    """
    used = sum(len(trial.times_ms) + trial.num_failed for trial in trials)
    if not any(trial.times_ms for trial in trials) and (first := _first(space, trials, num_runs, seed)):
        return first
    explore = min(math.floor(_EXPLORE_SHARE * num_runs), _most_explored(space)) - used
    if explore > 0 and len(trials) < space.num_points:
        return _propose(space, trials, min(BATCH, explore), seed)
    return _halve(trials, num_runs - used)


def finalists(trials: Sequence[Trial], base: Point, num_finalists: int) -> list[Point]:
    """The fastest beside the base: those with most repeats have been the fastest all along."""
    ranked = sorted(_in_race(trials), key=lambda trial: (-len(trial.times_ms), trial.log_time))
    return [trial.point for trial in ranked if trial.point != base][:num_finalists]


def reference(trials: Sequence[Trial], base: Point, best: Sequence[Point]) -> Point | None:
    """What the finalists are held against: the base where it ran, else what ran and is nearest to it.

    None where nothing beside the finalists ran.
    """
    if any(trial.times_ms for trial in trials if trial.point == base):
        return base
    others = [trial for trial in _in_race(trials) if trial.point not in best]
    nearest = min(others, key=lambda trial: (_num_changed(trial.point), trial.log_time), default=None)
    return nearest.point if nearest else None


def _num_changed(point: Point) -> int:
    return sum(place != 0 for place in point)


def _first(space: Space, trials: Sequence[Trial], num_runs: int, seed: int) -> list[Point]:
    known = {trial.point for trial in trials}
    singles = [point for point in space.singles() if point not in known]
    random.Random(seed).shuffle(singles)  # noqa: S311 no secret
    first = [space.base] if space.base not in known else []
    return [*first, *singles][: max(1, math.floor(_FIRST_SHARE * num_runs))]


def _most_explored(space: Space) -> int:
    """Each value alone, and a quarter of the grid: more of it teaches little, even where it would be affordable."""
    return min(space.num_points, 1 + len(space.singles()) + max(2 * BATCH, space.num_points // 4))


def _propose(space: Space, trials: Sequence[Trial], num: int, seed: int) -> list[Point]:
    from jobs.search_sampler import propose  # optuna is loaded by those who search, not by the web

    return propose(space, trials, num, seed)


def _halve(trials: Sequence[Trial], num_left: int) -> list[Point]:
    """Who is to be repeated: of those with so many repeats the fastest third, until two are left."""
    racing = sorted(_in_race(trials), key=lambda trial: trial.log_time)
    for rung in range(1, _MOST_REPEATS):
        kept = racing[: max(2, math.ceil(len(racing) / _REDUCTION**rung))]
        missing = [trial.point for trial in kept if len(trial.times_ms) <= rung]
        if missing:
            return missing[: max(0, num_left)]
    return []


def _in_race(trials: Sequence[Trial]) -> list[Trial]:
    return [trial for trial in trials if trial.times_ms and not trial.is_out]
