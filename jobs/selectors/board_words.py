"""A board in words: what it found, how each configuration stands, and why what does not rank does not."""

from django.utils.translation import gettext as _

from jobs.selectors.interval_words import interval_words, ratio_interval_words
from jobs.selectors.leaderboard import WANTED_SEEDS, BoardRow, BoardView, Standing
from jobs.selectors.study_words import diverged_words
from jobs.statistics import Verdict


def badge(row: BoardRow) -> tuple[str, str]:
    """The kind of a pill and its words."""
    if row.standing is Standing.WORSE:
        return "failed", _("faster, not equal") if row.is_faster_not_equal else _("worse loss")
    if row.standing is Standing.INSUFFICIENT:
        return "paused", _not_shown(row)
    return {
        Standing.BASELINE: ("online", _("baseline")),
        Standing.EQUAL: ("succeeded", _("equal loss")),
        Standing.BETTER: ("succeeded", _("better loss")),
        Standing.UNGATED: ("cancelled", _("no loss to compare")),
        Standing.FAILED: ("failed", _("no run ended well")),
    }[row.standing]


def _not_shown(row: BoardRow) -> str:
    pairs = row.loss.n if row.loss else 0
    if row.loss and row.loss.num_diverged:
        numbers = {"k": row.loss.num_diverged, "n": row.num_runs}
        return _("equality not shown: %(k)s of %(n)s runs diverged") % numbers
    if pairs < WANTED_SEEDS:
        return _("insufficient evidence: %(n)s of %(wanted)s seeds") % {"n": pairs, "wanted": WANTED_SEEDS}
    return _("equality not shown, n = %(n)s") % {"n": pairs}


def loss_words(row: BoardRow) -> str:
    """The evidence behind a badge."""
    if row.loss is None:
        return ""
    numbers = {
        "difference": f"{row.loss.difference:+.3g}",
        "margin": f"{row.loss.margin:.3g}",
        "n": row.loss.n,
        "low": f"{row.loss.low:+.3g}",
        "high": f"{row.loss.high:+.3g}",
    }
    if row.loss.n < 2:
        return _("Loss %(difference)s to the baseline in one pair; the margin is ±%(margin)s.") % numbers
    return (
        _("Loss %(difference)s to the baseline (90 %% interval %(low)s to %(high)s, n = %(n)s; margin ±%(margin)s).")
        % numbers
    )


def ratio_words(row: BoardRow) -> str:
    """The ranking figure beside the baseline's."""
    if row.ratio is None:
        return _("Too few pairs of the same seed for an interval.")
    return ratio_interval_words(row.ratio)


def headline(view: BoardView) -> str:
    """What the board says in one sentence."""
    winner = view.winner
    if winner is None:
        return _("Nothing is ranked yet.")
    tied = [row for row in view.ranked if row.rank == 1]
    if len(tied) > 1:
        return _("%(n)s configurations share the first place: no difference beyond noise was shown between them.") % {
            "n": len(tied)
        }
    if winner.is_baseline:
        return _("The baseline is first: nothing is shown to be better at equal loss.")
    if winner.ratio is None or winner.verdict is not Verdict.BETTER:
        return _("The first place is not shown to be better than the baseline yet.")
    ratio = 1 / winner.ratio.ratio if view.metric.lower_is_better else winner.ratio.ratio
    low, high = winner.ratio.likely
    low, high = (1 / high, 1 / low) if view.metric.lower_is_better else (low, high)
    words = _("First: %(ratio)s times better than the baseline (%(interval)s).") % {
        "ratio": f"{ratio:.2f}",
        "interval": interval_words(low, high, winner.ratio.n, confidence=95),
    }
    return " ".join(filter(None, [words, _not_equal(winner), diverged_words(winner.outcomes, winner.num_runs)]))


def _not_equal(row: BoardRow) -> str:
    """What must be said of a first one that ranks only because everything does."""
    return "" if row.standing.may_rank else _("Its loss is not shown to be equal or better.")
