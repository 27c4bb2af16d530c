"""A device is taken out of service, and put back by hand."""

from django.db import transaction
from django.utils.translation import gettext

from jobs.models import AuditAction, Device, User
from jobs.services.audit import note
from jobs.services.errors import NotPossible
from jobs.services.wake import wake_on_commit

MAX_REASON_LENGTH = 200  # what the column holds


def quarantine_device(device: Device, reason: str, by: User | None = None) -> None:
    """Let nothing more be started on the device; what runs on it goes on. `by` is None where Pitwall does it."""
    reason = reason.strip()[:MAX_REASON_LENGTH]
    if not reason:
        raise NotPossible(gettext("Say why the device is taken out of service."))
    with transaction.atomic():
        if Device.objects.filter(pk=device.pk).exclude(quarantine_reason=reason).update(quarantine_reason=reason):
            note(by, AuditAction.QUARANTINE, device=device, reason=reason)
    device.refresh_from_db()


def release_device(device: Device, by: User | None = None, reason: str = "") -> None:
    """Put a device back into service: somebody has seen to it that nothing is left on it.

    That ends its quarantine and the lease of an attempt that has ended, as on a host that is not heard from any
    more. Raises `NotPossible` while its attempt has not ended.
    """
    with transaction.atomic():
        device = Device.objects.select_for_update(of=("self",)).select_related("attempt", "worker").get(pk=device.pk)
        if device.attempt and device.attempt.outcome is None:
            raise NotPossible(gettext("Job %(job)s runs on this device.") % {"job": device.attempt.job_id})
        if device.attempt is None and not device.quarantine_reason:
            return
        Device.objects.filter(pk=device.pk).update(quarantine_reason="", attempt=None)
        note(by, AuditAction.RELEASE, device=device, reason=reason, before=device.quarantine_reason)
        for queue in device.worker.queues.all():
            wake_on_commit(queue.name)
