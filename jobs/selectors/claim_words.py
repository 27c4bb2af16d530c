"""Claims and what was measured of them, in words."""

from django.utils.translation import gettext as _

from jobs.claim_verdict import ClaimVerdict, Measured
from jobs.contract.claims import Promise, Quantity
from jobs.selectors.claims import Evidence, PresetState, Standing
from jobs.selectors.interval_words import interval_words


def promise_words(promise: Promise) -> str:
    """What is promised, as a figure that can be held against a measurement."""
    if promise.quantity is Quantity.TIME:
        words = _("at least %(factor)s times as fast") % {"factor": f"{promise.at_least:.3g}"}
        return words if promise.at_least > 1 else _("faster")
    words = _("at least %(share)s less memory") % {"share": _percent(1 - 1 / promise.at_least)}
    return words if promise.at_least > 1 else _("less memory")


def measured_words(promise: Promise, measured: Measured | None) -> str:
    """What was seen of a promise, with its 99 % interval."""
    if measured is None:
        return _("Too few repeats for a verdict.")
    if promise.quantity is Quantity.TIME:
        interval = interval_words(measured.low, measured.high, measured.n, confidence=99)
        return _("%(factor)s times as fast (%(interval)s)") % {"factor": f"{measured.factor:.2f}", "interval": interval}
    ends = 1 / measured.high, 1 / measured.low
    interval = interval_words(*ends, measured.n, confidence=99, show=_percent)
    return _("%(share)s of the memory (%(interval)s)") % {"share": _percent(1 / measured.factor), "interval": interval}


def verdict_words(verdict: ClaimVerdict) -> str:
    """The verdict of one device."""
    return {
        ClaimVerdict.HOLDS: _("holds here"),
        ClaimVerdict.FAILS: _("does not hold here"),
        ClaimVerdict.UNDECIDED: _("not decided yet"),
    }[verdict]


def standing_words(standing: Standing) -> str:
    """What is known of a claim here."""
    return {
        Standing.HOLDS: _("holds here"),
        Standing.FAILS: _("does not hold here"),
        Standing.MIXED: _("depends on the device"),
        Standing.UNDECIDED: _("not decided yet"),
        Standing.MEASURING: _("being measured"),
        Standing.NEEDS_GPU: _("needs a GPU"),
        Standing.NOT_MEASURED: _("not measured yet"),
    }[standing]


def preset_words(state: PresetState) -> str:
    """Why its study cannot be made now; empty where it can."""
    if state.queue:
        return ""
    if state.preset.num_gpus > 1:
        return _("Needs a worker with %(n)s GPUs.") % {"n": state.preset.num_gpus}
    return _("Needs a worker with a GPU.") if state.preset.num_gpus else _("Needs a worker that is online.")


def ground_words(evidence: Evidence) -> str:
    """On what it was measured: the environment may differ from one claim to the next."""
    versions = [("PyTorch", "torch"), (_("driver"), "driver"), (_("engine"), "engine")]
    known = [f"{label} {evidence.versions[name]}" for label, name in versions if evidence.versions.get(name)]
    return ", ".join([evidence.device_name, *known])


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
