"""What a study found, in a sentence: first how much faster, then whether at equal loss, then what it needs."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from jobs.contract.states import Outcome
from jobs.equal_loss import LossVerdict
from jobs.messages import option_title
from jobs.selectors.interval_words import interval_words
from jobs.selectors.studies import StudyRow, StudyView
from jobs.statistics import RatioInterval, Verdict


def headline(view: StudyView) -> str:
    """The answer as far as it is known."""
    if winner := view.winner:
        return sentence(winner)
    if view.is_over and all(row.step_time_ms is None for row in view.rows):
        return _("No run of it ended well, so there is nothing to compare.")
    if view.num_environments > 1:
        return _(
            "The runs were done on different ground (device or versions): only those on the same are held against "
            "each other, and none is shown to be faster than the baseline at equal loss."
        )
    if not view.is_over:
        return _("No configuration is shown to be faster than the baseline at equal loss yet.")
    return _("No configuration is shown to be faster than the baseline at equal loss.")


def sentence(row: StudyRow) -> str:
    """A configuration that ranks and is faster: what it gives at which loss, and what it needs."""
    if row.time is None or row.loss is None:
        return row_words(row)
    parts = {"name": in_short(row), "faster": _faster(row.time), "memory": _memory_clause(row)}
    words = _("%(name)s is %(faster)s at equal loss%(memory)s.")
    if row.loss.verdict is LossVerdict.BETTER:
        words = _("%(name)s is %(faster)s at a better loss%(memory)s.")
    return " ".join(filter(None, [words % parts, diverged_words(row.outcomes, len(row.jobs))]))


def diverged_words(outcomes: Mapping[str, int], num_runs: int) -> str:
    """What its losses leave out: runs that diverged have none to compare. Empty where none did."""
    num_diverged = outcomes.get(Outcome.DIVERGED, 0)
    if not num_diverged:
        return ""
    return _("%(k)s of its %(n)s runs diverged and are not in these figures.") % {"k": num_diverged, "n": num_runs}


def in_short(row: StudyRow) -> str:
    """A configuration by what it changes, such as “bf16-mixed + compile mode default”."""
    return changes_in_short(row.configuration.changes) or _("Baseline")


def changes_in_short(changes: Mapping[str, Any]) -> str:
    """Options with their values; empty where nothing is changed."""
    return " + ".join(_change_in_short(name, value) for name, value in changes.items())


# Options whose values say by themselves what they are about.
_NEED_NO_NAME = ("precision", "optimizer", "model", "dataset", "parallelism")


def _change_in_short(name: str, value: Any) -> str:
    if name in _NEED_NO_NAME:
        return str(value)
    title = option_title(name)
    title = title[:1].lower() + title[1:] if title[1:2].islower() else title
    if isinstance(value, bool):
        return title if value else _("without %(option)s") % {"option": title}
    return f"{title} {_('not set') if value is None else value}"


def row_words(row: StudyRow) -> str:
    """One configuration beside the baseline."""
    if row.is_baseline:
        return _("The baseline.")
    if row.time is None:
        return _("Too few repeats for a verdict.")
    diverged = diverged_words(row.outcomes, len(row.jobs))
    parts = [_time_words(row.time, row.time_verdict), _loss_words(row), diverged, _memory_words(row)]
    return " ".join(filter(None, parts))


def _time_words(time: RatioInterval, verdict: Verdict) -> str:
    if verdict is Verdict.TIE:
        return _("As fast as the baseline within noise (n = %(n)s).") % {"n": time.n}
    if verdict is Verdict.TOO_NOISY:
        return _("Too noisy here to tell its speed (n = %(n)s).") % {"n": time.n}
    if verdict is Verdict.BETTER:
        return f"{_faster(time)}."
    interval = interval_words(*time.likely, time.n, confidence=95)
    return _("%(ratio)s times slower (%(interval)s).") % {"ratio": f"{time.ratio:.2f}", "interval": interval}


def _faster(time: RatioInterval) -> str:
    low, high = time.likely
    interval = interval_words(1 / high, 1 / low, time.n, confidence=95)
    return _("%(ratio)s times faster (%(interval)s)") % {"ratio": f"{1 / time.ratio:.2f}", "interval": interval}


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
    share = _memory_share(row)
    if share is None:
        return ""
    words = _("Needs %(share)s %% less memory.") if share < 0 else _("Needs %(share)s %% more memory.")
    return words % {"share": abs(share)}


def _memory_clause(row: StudyRow) -> str:
    share = _memory_share(row)
    if share is None:
        return ""
    words = _(", and needs %(share)s %% less memory") if share < 0 else _(", but needs %(share)s %% more memory")
    return words % {"share": abs(share)}


def _memory_share(row: StudyRow) -> int | None:
    """By how many percent its memory differs; None where no difference is shown, or none of a whole percent."""
    if row.memory is None or row.memory_verdict not in (Verdict.BETTER, Verdict.WORSE):
        return None
    return round(100 * (row.memory.ratio - 1)) or None
