"""A job that has ended is queued again: it keeps its number, and its next attempt is a new one."""

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext

from jobs.contract.states import ENDED_STATES, State
from jobs.models import AuditAction, Job, User
from jobs.models.figures import RANKED_METRICS
from jobs.models.job import Origin
from jobs.services.audit import note
from jobs.services.errors import NotPossible
from jobs.services.wake import wake_on_commit


def requeue_job(job: Job, by: User | None = None, reason: str = "") -> Job:
    """Queue an ended job again, at the end of its line and with all its attempts before it.

    Raises `NotPossible` where it has not ended, or was imported and so never ran here.
    """
    if job.origin == Origin.IMPORTED:
        raise NotPossible(gettext("Job %(job)s was imported; clone it to run it here.") % {"job": job.pk})
    now = timezone.now()
    with transaction.atomic():
        requeued = Job.objects.filter(pk=job.pk, state__in=ENDED_STATES).update(
            state=State.QUEUED,
            outcome=None,
            ended_at=None,
            queued_at=now,
            order_key=now.timestamp(),
            max_attempts=job.attempts.count() + job.queue.max_attempts,
            cancel_requested_at=None,
            cancel_requested_by=None,
            cancel_reason="",
            **dict.fromkeys(RANKED_METRICS),  # its next attempt will tell
        )
        if not requeued:
            raise NotPossible(gettext("Job %(job)s has not ended yet.") % {"job": job.pk})
        note(by, AuditAction.REQUEUE, job=job, reason=reason, before=job.outcome)
        wake_on_commit(job.queue.name)
    job.refresh_from_db()
    return job
