"""What options are worth, alone and together: factors paired by seed, and whether they multiply to the total.

Pure functions of numbers. A factor is a figure over the baseline's, below 1 where an option lowers it. The
interaction is the total over the product of the single factors; both come from the same seeds, so that what a seed does
to all configurations alike cancels out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from math import prod

from jobs.statistics import RatioInterval, ratio_interval

# Above this half-width of its 95 % interval an interaction that was not shown could hide one that matters.
_WIDEST_HALF_WIDTH = 0.05

Repeats = Mapping[int, float]  # one configuration's figure by seed


class Together(StrEnum):
    """How single factors make up the total."""

    MULTIPLY = "multiply"  # within noise that is narrow
    INTERACT = "interact"  # beyond noise
    TOO_NOISY = "too_noisy"
    TOO_FEW = "too_few"


@dataclass(frozen=True)
class Factors:
    """Of one figure: each option's factor alone and on top of all others, their product, the total, the interaction.

    None where fewer than two seeds have all that it takes.
    """

    singles: list[RatioInterval | None]
    on_top: list[RatioInterval | None]  # with all options over with all but this one
    interactions: list[RatioInterval | None]  # `on_top` over alone: what the company of the others changes
    total: RatioInterval | None
    interaction: RatioInterval | None  # total over product
    together: Together

    @property
    def product(self) -> float | None:
        """What the single factors would make if they multiplied."""
        known = [single.ratio for single in self.singles if single]
        return prod(known) if len(known) == len(self.singles) else None


def take_apart(
    baseline: Repeats,
    singles: Sequence[Repeats],
    together: Repeats,
    without: Sequence[Repeats | None],
    *,
    until_sure: bool = False,
) -> Factors:
    """The factors of an ablation; `without` are all options but one, None where that was not run.

    `until_sure` as for `ratio_interval`.
    """
    interval_of = partial(_interval, until_sure=until_sure)
    alone = [_ratios(single, baseline) for single in singles]
    on_top = [_ratios(together, others) if others is not None else {} for others in without]
    total = _ratios(together, baseline)
    seeds = set(total).intersection(*alone)
    interaction = interval_of({seed: total[seed] / prod(ratios[seed] for ratios in alone) for seed in sorted(seeds)})
    return Factors(
        singles=[interval_of(ratios) for ratios in alone],
        on_top=[interval_of(ratios) for ratios in on_top],
        interactions=[interval_of(_ratios(top, own)) for top, own in zip(on_top, alone, strict=True)],
        total=interval_of(total),
        interaction=interaction,
        together=_judge(interaction),
    )


@dataclass(frozen=True)
class Bar:
    """One bar of a waterfall, from one value to another."""

    start: float
    end: float


def waterfall(baseline: float, factors: Sequence[float], total: float) -> list[Bar]:
    """The baseline's bar, one for each factor from where the last one ended, what is left to the total, the total.

    The last but one is the interaction: it spans what the product of the factors misses.
    """
    bars, level = [Bar(0.0, baseline)], baseline
    for factor in factors:
        bars.append(Bar(level, level * factor))
        level *= factor
    return [*bars, Bar(level, total), Bar(0.0, total)]


def _ratios(over: Repeats, under: Repeats) -> dict[int, float]:
    return {seed: over[seed] / under[seed] for seed in over if under.get(seed)}


def _interval(ratios: Repeats, *, until_sure: bool) -> RatioInterval | None:
    return ratio_interval(list(ratios.values()), until_sure=until_sure)


def _judge(interaction: RatioInterval | None) -> Together:
    if interaction is None:
        return Together.TOO_FEW
    if not interaction.contains_one:
        return Together.INTERACT
    return Together.MULTIPLY if interaction.half_width < _WIDEST_HALF_WIDTH else Together.TOO_NOISY
