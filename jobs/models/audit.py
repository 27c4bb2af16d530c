"""Who did what to which job, queue, worker or device, when and why."""

from typing import Any, NoReturn

from django.db import models
from django.utils.translation import gettext_lazy as _


class AuditAction(models.TextChoices):
    """What people do to what waits, runs and serves."""

    CANCEL = "cancel", _("Cancel")
    REQUEUE = "requeue", _("Queue again")
    CLONE = "clone", _("Copy")
    FIT = "fit", _("Smaller micro-batches")
    PRIORITY = "priority", _("Priority")
    REORDER = "reorder", _("Order")
    MOVE = "move", _("Move to another queue")
    TIME_LIMIT = "time_limit", _("Time limit")
    TAGS = "tags", _("Tags")
    PAUSE = "pause", _("Pause")
    RESUME = "resume", _("Resume")
    LIMITS = "limits", _("Queue settings")
    DRAIN = "drain", _("Drain")
    UNDRAIN = "undrain", _("End of drain")
    FORGET = "forget", _("Forget")
    QUARANTINE = "quarantine", _("Quarantine")
    RELEASE = "release", _("Release")
    EXTEND = "extend", _("Extend")
    SHARE = "share", _("Share")
    UNSHARE = "unshare", _("End of share")
    DROP_POINTS = "drop_points", _("Drop points")
    BASELINE = "baseline", _("Baseline")
    STOP = "stop", _("Stop")


class AppendOnly(models.QuerySet["AuditEntry"]):
    """Rows that are written once."""

    def update(self, **values: Any) -> NoReturn:
        """Never."""
        raise TypeError("the audit trail is written once and never changed")

    def delete(self) -> NoReturn:
        """Never."""
        raise TypeError("the audit trail is written once and never changed")


class AuditEntry(models.Model):
    """One act of one person. It names its subject in words too, for what it points to may be gone one day."""

    at = models.DateTimeField(_("when"), auto_now_add=True)
    actor = models.ForeignKey("User", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    actor_name = models.CharField(_("who"), max_length=150, blank=True)  # empty: Pitwall itself
    action = models.CharField(_("what"), max_length=20, choices=AuditAction.choices)
    subject = models.CharField(_("on"), max_length=250)
    job = models.ForeignKey("Job", null=True, blank=True, on_delete=models.SET_NULL, related_name="audit")
    study = models.ForeignKey("Study", null=True, blank=True, on_delete=models.SET_NULL, related_name="audit")
    board = models.ForeignKey("Board", null=True, blank=True, on_delete=models.SET_NULL, related_name="audit")
    search = models.ForeignKey("Search", null=True, blank=True, on_delete=models.SET_NULL, related_name="audit")
    queue = models.ForeignKey("Queue", null=True, blank=True, on_delete=models.SET_NULL, related_name="audit")
    worker = models.ForeignKey("Worker", null=True, blank=True, on_delete=models.SET_NULL, related_name="audit")
    device = models.ForeignKey("Device", null=True, blank=True, on_delete=models.SET_NULL, related_name="audit")
    reason = models.CharField(_("reason"), max_length=500, blank=True)
    detail = models.JSONField(default=dict)  # what it was and what it became, by the action

    objects = AppendOnly.as_manager()

    class Meta:
        verbose_name = _("audit entry")
        verbose_name_plural = _("audit trail")
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.actor_name or 'Pitwall'}: {self.action} {self.subject}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Store it, once."""
        if self.pk is not None:
            raise TypeError("the audit trail is written once and never changed")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Never."""
        raise TypeError("the audit trail is written once and never changed")
