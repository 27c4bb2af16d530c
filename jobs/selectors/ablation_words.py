"""An ablation in words: factors with their intervals, and whether they make up the total."""

from django.utils.translation import gettext as _

from jobs.ablation import Together
from jobs.equal_loss import LossComparison, LossVerdict
from jobs.selectors.ablation import Waterfall
from jobs.selectors.interval_words import more_repeats
from jobs.statistics import RatioInterval, is_told


def factor_words(interval: RatioInterval | None) -> str:
    """A factor with its 95 % interval."""
    if interval is None:
        return _("–")
    low, high = interval.likely
    ends = _("%(low)s to %(high)s") % {"low": f"{low:.3f}", "high": f"{high:.3f}"}
    return f"× {interval.ratio:.3f} ({ends if is_told(low, high) else more_repeats()})"


def loss_words(loss: LossComparison | None) -> str:
    """What became of the loss."""
    if loss is None:
        return _("not compared")
    verdict = {
        LossVerdict.EQUAL: _("equal"),
        LossVerdict.BETTER: _("better"),
        LossVerdict.WORSE: _("worse"),
        LossVerdict.INSUFFICIENT: _("equality not shown"),
    }[loss.verdict]
    return f"{verdict} ({loss.difference:+.2g})"


def together_words(waterfall: Waterfall) -> str:
    """Whether the single factors multiply to the total, or interact, in a sentence."""
    factors = waterfall.factors
    if factors.product is None or factors.total is None or factors.interaction is None:
        return _("Too few repeats to tell whether the factors multiply to the total or interact.")
    numbers = {
        "product": f"{factors.product:.3f}",
        "total": f"{factors.total.ratio:.3f}",
        "interaction": factor_words(factors.interaction),
        "reach": f"{factors.interaction.half_width:.1%}",
        "noise": _noise(factors.interaction),
    }
    sentences = {
        Together.INTERACT: _(
            "The options interact: their factors multiply to %(product)s, and all together make %(total)s, "
            "which is %(interaction)s of it."
        ),
        Together.MULTIPLY: _(
            "The factors multiply to the total within ± %(reach)s: %(product)s, and all together make %(total)s."
        ),
        Together.TOO_NOISY: _(
            "The factors multiply to %(product)s and all together make %(total)s; "
            "too noisy here to tell whether they interact (%(noise)s)."
        ),
    }
    return sentences[factors.together] % numbers


def _noise(interaction: RatioInterval) -> str:
    return f"± {interaction.half_width:.1%}" if is_told(*interaction.likely) else more_repeats()
