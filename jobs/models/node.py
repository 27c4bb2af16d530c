"""One more host of an attempt that runs on several."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobs.models.job import OUTCOME_CHOICES


class AttemptNode(models.Model):
    """A host that takes part in an attempt beside its first one, which the attempt itself stands for as node 0.

    Its own supervisor writes the row until `ended_at`; by then nothing of the attempt is left on that host.
    """

    attempt = models.ForeignKey("Attempt", on_delete=models.CASCADE, related_name="nodes")
    rank = models.PositiveSmallIntegerField()
    worker = models.ForeignKey("Worker", null=True, blank=True, on_delete=models.SET_NULL, related_name="nodes")
    rendezvous = models.CharField(max_length=300, blank=True)  # HOST:PORT, once node 0 has chosen it
    joined_at = models.DateTimeField(null=True, blank=True)  # when its host began to start its supervisor
    supervisor_pid = models.PositiveIntegerField(null=True, blank=True)
    tree_tag = models.CharField(max_length=100, blank=True)  # in the environment of the supervisor and all below it
    lease_expires_at = models.DateTimeField()
    stop_requested_at = models.DateTimeField(null=True, blank=True)  # node 0 has ended
    ended_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=20, choices=OUTCOME_CHOICES, null=True, blank=True)  # noqa: DJ001 null: not ended
    error = models.JSONField(null=True, blank=True)  # `contract.events.ErrorInfo`

    class Meta:
        verbose_name = _("node")
        verbose_name_plural = _("nodes")
        ordering = ["attempt", "rank"]
        constraints = [
            models.UniqueConstraint(fields=["attempt", "rank"], name="one_row_per_node"),
            models.UniqueConstraint(fields=["attempt", "worker"], name="one_node_per_host"),
        ]

    def __str__(self) -> str:
        return f"{self.attempt}, node {self.rank}"
