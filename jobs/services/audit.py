"""The audit trail: each service that does something for a person notes it in the same transaction."""

import logging
from typing import Any

from django.utils.translation import gettext

from jobs.models import Board, Device, Job, Queue, Search, Study, User, Worker
from jobs.models.audit import AuditAction, AuditEntry
from jobs.services.errors import NotPossible

logger = logging.getLogger(__name__)

MAX_REASON_LENGTH = 500  # what the column holds


def clean_reason(reason: str) -> str:
    """The reason without spaces around it; raises `NotPossible` where it is too long to keep."""
    if len(reason) > MAX_REASON_LENGTH:
        raise NotPossible(gettext("A reason has at most %(max)s characters.") % {"max": MAX_REASON_LENGTH})
    return reason.strip()


def note(
    by: User | None,
    action: AuditAction,
    *,
    job: Job | None = None,
    study: Study | None = None,
    board: Board | None = None,
    search: Search | None = None,
    queue: Queue | None = None,
    worker: Worker | None = None,
    device: Device | None = None,
    reason: str = "",
    **detail: Any,
) -> AuditEntry:
    """Keep who did what; `by` is None where Pitwall did it itself. The first thing named is the subject, if any is."""
    subject = job or study or board or search or device or worker or queue
    entry = AuditEntry(
        actor=by,
        actor_name=by.get_username() if by else "",
        action=action,
        subject=str(subject or "")[:250],
        job=job,
        study=study,
        board=board,
        search=search,
        queue=queue or (job.queue if job else None),
        worker=worker or (device.worker if device else None),
        device=device,
        reason=clean_reason(reason),
        detail=detail,
    )
    entry.save()
    logger.info("%s", entry, extra={"job": job.pk if job else None})
    return entry
