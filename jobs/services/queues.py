"""What an admin does to a queue."""

from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.text import capfirst
from django.utils.translation import gettext

from jobs.models import AuditAction, Queue, User
from jobs.services.audit import note
from jobs.services.wake import wake_on_commit


def pause_queue(queue: Queue, by: User, reason: str) -> None:
    """Let nothing more be claimed from the queue; what runs goes on."""
    queue.paused_at, queue.paused_by, queue.pause_reason = timezone.now(), by, reason.strip()
    with transaction.atomic():
        queue.full_clean()
        queue.save(update_fields=["paused_at", "paused_by", "pause_reason"])
        note(by, AuditAction.PAUSE, queue=queue, reason=queue.pause_reason)


def resume_queue(queue: Queue, by: User, reason: str = "") -> None:
    """Let its jobs be claimed again; where it is not paused, nothing changes."""
    with transaction.atomic():
        paused = Queue.objects.filter(pk=queue.pk).exclude(paused_at=None)
        if paused.update(paused_at=None, paused_by=None, pause_reason=""):
            note(by, AuditAction.RESUME, queue=queue, reason=reason)
            wake_on_commit(queue.name)
    queue.refresh_from_db()


# What staff set about a queue; everything else about it has an act of its own.
SETTINGS = ("description", "default_priority", "max_running", "max_running_per_user", "max_attempts")


def change_queue(queue: Queue, by: User, reason: str = "", **values: Any) -> None:
    """Set some of `SETTINGS`; raises Django's `ValidationError` where a value is refused."""
    unknown = set(values) - set(SETTINGS)
    if unknown:
        raise TypeError(f"not a setting of a queue: {', '.join(unknown)}")
    with transaction.atomic():
        stored = Queue.objects.select_for_update().get(pk=queue.pk)
        before = {name: getattr(stored, name) for name in values}
        for name, value in values.items():
            setattr(stored, name, value)
        stored.full_clean()
        changed = [name for name in values if before[name] != getattr(stored, name)]
        if changed:
            stored.save(update_fields=changed)
            changes = "; ".join(_in_words(stored, name, before[name]) for name in changed)
            note(by, AuditAction.LIMITS, queue=stored, reason=reason, changes=changes)
            wake_on_commit(stored.name)
    queue.refresh_from_db()


def _in_words(queue: Queue, name: str, before: Any) -> str:
    label = next(field.verbose_name for field in Queue._meta.fields if field.name == name)
    values = [gettext("none") if value in (None, "") else value for value in (before, getattr(queue, name))]
    return f"{capfirst(str(label))}: {values[0]} → {values[1]}"
