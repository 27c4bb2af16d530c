"""What a study found, in a sentence: first how much faster, then whether at equal loss, then what it needs."""

import math

from django.utils.translation import gettext as _

from jobs.equal_loss import LossVerdict
from jobs.selectors.studies import StudyRow, StudyView
from jobs.statistics import RatioInterval, Verdict


def headline(view: StudyView) -> str:
    """The answer as far as it is known."""
    if view.num_environments > 1:
        return _("The runs were done on different ground (device or versions): no verdict is made of them.")
    if winner := view.winner:
        name = _in_short(winner)
        return _("%(name)s: %(words)s") % {"name": name, "words": row_words(winner)}
    if not view.is_over:
        return _("No configuration is shown to be faster than the baseline at equal loss yet.")
    return _("No configuration is shown to be faster than the baseline at equal loss.")


def row_words(row: StudyRow) -> str:
    """One configuration beside the baseline."""
    if row.is_baseline:
        return _("The baseline.")
    if row.time is None:
        return _("Too few repeats for a verdict.")
    return " ".join([_time_words(row.time, row.time_verdict), _loss_words(row), _memory_words(row)]).strip()


def _in_short(row: StudyRow) -> str:
    return " + ".join(f"{name} {value}" for name, value in row.configuration.changes.items())


def _time_words(time: RatioInterval, verdict: Verdict) -> str:
    if verdict is Verdict.TIE:
        return _("As fast as the baseline within noise (n = %(n)s).") % {"n": time.n}
    if verdict is Verdict.TOO_NOISY:
        return _("Too noisy here to tell its speed (n = %(n)s).") % {"n": time.n}
    faster = verdict is Verdict.BETTER
    ratio = 1 / time.ratio if faster else time.ratio
    reach = math.log1p(time.half_width)  # the 95 % interval on the logarithm
    numbers = {
        "ratio": f"{ratio:.2f}",
        "low": f"{ratio * math.exp(-reach):.2f}",
        "high": f"{ratio * math.exp(reach):.2f}",
        "n": time.n,
    }
    if faster:
        return _("%(ratio)s times faster (95 %% interval %(low)s to %(high)s, n = %(n)s).") % numbers
    return _("%(ratio)s times slower (95 %% interval %(low)s to %(high)s, n = %(n)s).") % numbers


def _loss_words(row: StudyRow) -> str:
    if not row.is_same_work:
        return _("It does other work than the baseline, so its loss is not compared.")
    if row.loss is None:
        return _("Its loss is not compared.")
    return {
        LossVerdict.EQUAL: _("Equal loss."),
        LossVerdict.BETTER: _("A better loss."),
        LossVerdict.WORSE: _("A worse loss."),
        LossVerdict.INSUFFICIENT: _("Whether its loss is equal is not shown."),
    }[row.loss.verdict]


def _memory_words(row: StudyRow) -> str:
    if row.memory is None or row.memory_verdict not in (Verdict.BETTER, Verdict.WORSE):
        return ""
    share = f"{abs(1 - row.memory.ratio):.0%}"
    if row.memory.ratio < 1:
        return _("Needs %(share)s less memory.") % {"share": share}
    return _("Needs %(share)s more memory.") % {"share": share}
