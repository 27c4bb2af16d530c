"""An interval in words. One that reaches too far says nothing but that: its ends would only look like knowledge."""

from collections.abc import Callable

from django.utils.translation import gettext as _

from jobs.statistics import RatioInterval, is_told


def interval_words(
    low: float, high: float, n: int, *, confidence: int, show: Callable[[float], str] = "{:.2f}".format
) -> str:
    """The interval of a factor with the number of its pairs, to stand in brackets behind it or after a colon."""
    if not is_told(low, high):
        return _("not known within a factor of two yet, more repeats are needed, n = %(n)s") % {"n": n}
    numbers = {"confidence": confidence, "low": show(low), "high": show(high), "n": n}
    return _("%(confidence)s %% interval %(low)s to %(high)s, n = %(n)s") % numbers


def ratio_interval_words(ratio: RatioInterval) -> str:
    """What is known of a ratio to the baseline, as a sentence."""
    words = interval_words(ratio.low, ratio.high, ratio.n, confidence=99, show="{:.3f}".format)
    return _("Ratio, seed by seed: %(interval)s.") % {"interval": words}


def more_repeats() -> str:
    """What stands in a cell in place of an interval that reaches too far."""
    return _("more repeats needed")
