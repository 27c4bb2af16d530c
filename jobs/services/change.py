"""What is changed about a job while it waits, and never later: its priority, its queue, its time limit."""

from typing import Any

from django.db import transaction
from django.utils.translation import gettext
from pydantic import ValidationError

from jobs.contract.rules import refusals
from jobs.contract.spec import TrainSpec
from jobs.contract.states import State
from jobs.messages import translate, translate_with_field
from jobs.models import AuditAction, Job, Queue, User
from jobs.selectors.hosts import findings_for
from jobs.services.audit import note
from jobs.services.errors import NotAllowed, NotPossible
from jobs.services.wake import wake_on_commit

MOST_PRIORITY = 100  # and as much below zero


def change_priority(job: Job, by: User, priority: int, reason: str = "") -> None:
    """Let the job pass, or be passed by, those of another priority.

    Raises `NotAllowed` where somebody who is not staff would raise it above what the queue gives to everybody.
    """
    if abs(priority) > MOST_PRIORITY:
        raise NotPossible(
            gettext("A priority lies between %(low)s and %(high)s.") % {"low": -MOST_PRIORITY, "high": MOST_PRIORITY}
        )
    if priority > max(job.priority, job.queue.default_priority) and not by.is_staff:
        raise NotAllowed(
            gettext("Only staff raise a priority above the queue's own, which is %(default)s.")
            % {"default": job.queue.default_priority}
        )
    before = job.priority
    if priority == before:
        return
    with transaction.atomic():
        update_waiting(job, priority=priority)
        note(by, AuditAction.PRIORITY, job=job, reason=reason, before=before, after=priority)
        wake_on_commit(job.queue.name)


def move_job(job: Job, by: User, queue: Queue, reason: str = "") -> None:
    """Let the job wait in another queue, as old as it is; raises `NotPossible` where no worker there could run it."""
    before = job.queue
    if queue == before:
        raise NotPossible(
            gettext("Job %(job)s waits in the queue “%(queue)s” already.") % {"job": job.pk, "queue": queue.name}
        )
    _require_readable(job)
    if refused := refusals(findings_for(job.train_spec, queue)):
        raise NotPossible(
            gettext("No worker of the queue “%(queue)s” can run job %(job)s: %(why)s")
            % {"job": job.pk, "queue": queue.name, "why": translate(refused[0])}
        )
    with transaction.atomic():
        update_waiting(job, queue=queue)
        note(by, AuditAction.MOVE, job=job, queue=queue, reason=reason, before=before.name, after=queue.name)
        wake_on_commit(queue.name)


def change_time_limit(job: Job, by: User, time_limit_s: float | None, reason: str = "") -> None:
    """Give the job more or less time; None takes the limit away."""
    _require_readable(job)
    before = job.spec.get("time_limit_s")
    try:
        spec = TrainSpec.model_validate(job.spec | {"time_limit_s": time_limit_s})
    except ValidationError as error:
        raise NotPossible(gettext("A time limit is a number of seconds above zero.")) from error
    if spec.time_limit_s == before:
        return
    with transaction.atomic():
        update_waiting(job, spec=spec.model_dump(mode="json"))
        note(by, AuditAction.TIME_LIMIT, job=job, reason=reason, before=before, after=spec.time_limit_s)


def _require_readable(job: Job) -> None:
    """Raises `NotPossible` where an earlier version stored what no worker of this one can read."""
    if unread := job.stored_spec.unread:
        raise NotPossible(
            gettext("No worker can read what job %(job)s asks for (%(why)s). Submit it anew.")
            % {"job": job.pk, "why": " ".join(map(translate_with_field, unread))}
        )


def update_waiting(job: Job, **values: Any) -> None:
    """Change a job's row while it waits; raises `NotPossible` with a sentence where it does not wait any more."""
    waiting = Job.objects.filter(pk=job.pk, state=State.QUEUED, cancel_requested_at=None)
    changed = waiting.update(**values) if values else waiting.count()
    job.refresh_from_db()
    if changed != 1:
        text = (
            gettext("Job %(job)s has already ended.") if job.has_ended else gettext("Job %(job)s has already started.")
        )
        raise NotPossible(text % {"job": job.pk})
