"""A queue: where jobs wait, and what an admin pauses."""

from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _


class Queue(models.Model):
    """A named line of jobs that one or more workers serve. A pause is a row, so it outlives every restart."""

    name = models.CharField(
        _("name"), max_length=50, unique=True, validators=[RegexValidator(r"^[a-z0-9][a-z0-9_-]*$")]
    )
    description = models.CharField(_("description"), max_length=200, blank=True)
    default_priority = models.SmallIntegerField(_("default priority"), default=0)
    # Null: no limit. Both are checked by the claim, under a lock on this row.
    max_running = models.PositiveIntegerField(
        _("jobs at once"), null=True, blank=True, validators=[MinValueValidator(1)]
    )
    max_running_per_user = models.PositiveIntegerField(
        _("jobs at once per user"), null=True, blank=True, validators=[MinValueValidator(1)]
    )
    max_attempts = models.PositiveSmallIntegerField(
        _("attempts per job"),
        default=3,
        validators=[MinValueValidator(1)],
        help_text=_("How often a job is started whose worker is lost. A job that fails is not started again."),
    )
    paused_at = models.DateTimeField(null=True, blank=True)
    paused_by = models.ForeignKey("User", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    pause_reason = models.CharField(_("pause reason"), max_length=200, blank=True)

    class Meta:
        verbose_name = _("queue")
        verbose_name_plural = _("queues")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def is_paused(self) -> bool:
        """Whether nothing is claimed from it now."""
        return self.paused_at is not None
