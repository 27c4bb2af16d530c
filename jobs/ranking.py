"""Places on a board, shared where no difference was shown, and repeats paired by their seeds. Pure functions."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from jobs.statistics import RatioInterval, Verdict, judge, ratio_interval

Repeats = Sequence[tuple[int, float]]  # (seed, figure), the oldest first; infinity for what was never reached


@dataclass(frozen=True)
class Place:
    """Where something stands: as many are ahead of its group as `rank` less one; `is_shared` with others of it."""

    rank: int
    is_shared: bool


def paired_values(own: Repeats, others: Repeats) -> list[tuple[float, float]]:
    """Figures of the same seed, in the order in which they were measured."""
    waiting: dict[int, list[float]] = defaultdict(list)
    for seed, value in others:
        waiting[seed].append(value)
    return [(value, waiting[seed].pop(0)) for seed, value in own if waiting[seed]]


def seed_differences(own: Repeats, others: Repeats) -> list[float]:
    """Own less others, one for each seed that both have: the mean of its runs where there are several.

    What a seed decides, such as a loss, it decides again the same way: to run it twice tells nothing new.
    """
    mine, theirs = _by_seed(own), _by_seed(others)
    return [fmean(values) - fmean(theirs[seed]) for seed, values in mine.items() if seed in theirs]


def _by_seed(repeats: Repeats) -> dict[int, list[float]]:
    found: dict[int, list[float]] = defaultdict(list)
    for seed, value in repeats:
        found[seed].append(value)
    return dict(found)


def ratio_to(own: Repeats, others: Repeats) -> RatioInterval | None:
    """The paired ratio with its interval; None for fewer than two pairs, or where one of them has no finite figure."""
    pairs = paired_values(own, others)
    if not all(0 < value < math.inf for pair in pairs for value in pair):
        return None
    return ratio_interval([mine / theirs for mine, theirs in pairs])


def middle_of(repeats: Repeats) -> float:
    """The median; infinity where most never reached it, or where there is nothing."""
    values = [value for _seed, value in repeats]
    return median(values) if values else math.inf


def share_places(ordered: Sequence[Repeats], *, lower_is_better: bool) -> list[Place]:
    """Places for what is given in its order, the best first.

    Who is not shown to be worse than the first of a group shares its place (the rule of a tie: the 99 % interval of
    the paired ratio contains 1); the next one who is begins a group. Ties are not transitive, so one of the group
    decides: the first with which there are enough pairs to tell. Where there is none, nothing shows a difference.
    """
    groups: list[list[int]] = []
    for index, repeats in enumerate(ordered):
        if groups and not _is_shown_worse(repeats, [ordered[i] for i in groups[-1]], lower_is_better=lower_is_better):
            groups[-1].append(index)
        else:
            groups.append([index])
    return [Place(group[0] + 1, len(group) > 1) for group in groups for _index in group]


def _is_shown_worse(repeats: Repeats, group: Sequence[Repeats], *, lower_is_better: bool) -> bool:
    if math.isinf(middle_of(repeats)) != math.isinf(middle_of(group[0])):
        return True
    ratio = next((ratio for member in group if (ratio := ratio_to(repeats, member))), None)
    return judge(ratio, lower_is_better=lower_is_better) is Verdict.WORSE
