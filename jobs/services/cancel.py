"""A request to cancel: at once for a job that waits, through its supervisor for one that runs."""

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext

from jobs.contract.states import LIVE_STATES, Outcome, State
from jobs.models import AuditAction, Job, User
from jobs.services.audit import clean_reason, note
from jobs.services.errors import NotPossible
from jobs.services.reproductions import judge_reproductions


def request_cancel(job: Job, by: User, reason: str = "") -> Job:
    """Ask for the end of a job; a second request changes nothing.

    Raises `NotPossible` where the job has ended already or the reason is too long to keep.
    """
    reason, now = clean_reason(reason), timezone.now()
    request = {"cancel_requested_at": now, "cancel_requested_by": by, "cancel_reason": reason}
    with transaction.atomic():
        queued = Job.objects.filter(pk=job.pk, state=State.QUEUED)
        ended = queued.update(state=State.CANCELLED, outcome=Outcome.CANCELLED, ended_at=now, **request)
        live = Job.objects.filter(pk=job.pk, state__in=LIVE_STATES, cancel_requested_at=None)
        if ended or live.update(**request):
            note(by, AuditAction.CANCEL, job=job, reason=reason, while_queued=bool(ended))
        if ended:
            judge_reproductions(job.pk)
    job.refresh_from_db()
    if job.has_ended and not ended:
        raise NotPossible(gettext("Job %(job)s has already ended.") % {"job": job.pk})
    return job
