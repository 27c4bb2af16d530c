"""What came of measuring configurations again."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Prefetch
from django.utils.translation import gettext

from jobs.equal_loss import LossVerdict
from jobs.models import Job, Reproduction
from jobs.models.board import Agreement
from jobs.reproduction import WITHIN
from jobs.selectors.interval_words import interval_words


@dataclass(frozen=True)
class ReproductionView:
    """One reproduction in words."""

    agreement: str
    by: str
    runs_query: str  # its runs in the words of the list
    words: str


def newest_reproductions(entry_ids: Sequence[int]) -> dict[int, list[ReproductionView]]:
    """The newest reproduction of each entry; two queries."""
    found = Reproduction.objects.filter(entry__in=entry_ids).select_related("by").order_by("-pk")
    shown: dict[int, list[ReproductionView]] = {}
    for one in found.prefetch_related(Prefetch("jobs", Job.objects.only("pk", "state"))):
        if one.entry_id not in shown:
            shown[one.entry_id] = [_view(one)]
    return shown


def _view(one: Reproduction) -> ReproductionView:
    jobs = list(one.jobs.all())
    ids = ",".join(str(job.pk) for job in jobs)
    num_ended = sum(job.has_ended for job in jobs)
    return ReproductionView(one.agreement, one.by.get_username(), f"id:{ids}", _words(one, num_ended, len(jobs)))


def _words(one: Reproduction, num_ended: int, num_jobs: int) -> str:
    if one.agreement == Agreement.OPEN:
        return gettext("%(done)s of %(all)s runs ended") % {"done": num_ended, "all": num_jobs}
    if "ratio" not in one.finding:
        return ""
    low, high, n = (one.finding[name] for name in ("low", "high", "n"))
    interval = interval_words(low, high, n, confidence=99, show="{:.3g}".format)
    found = gettext("%(ratio)s× the step time (%(interval)s)") % {
        "ratio": f"{one.finding['ratio']:.3g}",
        "interval": interval,
    }
    return f"{found}{_conclusion(one)}"


def _conclusion(one: Reproduction) -> str:
    """What the interval comes to, and why it is not enough where it is not."""
    within = {"within": f"{100 * WITHIN:g} %"}
    if one.agreement == Agreement.AGREED:
        return gettext(": all of it within %(within)s") % within
    if one.agreement != Agreement.UNSURE:
        return ""
    if one.finding.get("loss") == LossVerdict.INSUFFICIENT:
        return gettext(": its loss is not shown to be what it was")
    return gettext(": not all of it within %(within)s, more repeats are needed") % within
