"""An attempt: one try at one job, of one host or of several that it leads, and what it measured."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobs.contract.metrics import Summary
from jobs.models.figures import Figures
from jobs.models.job import OUTCOME_CHOICES


class CurveForm(models.TextChoices):
    """How an attempt's points are stored."""

    AS_TOLD = "as_told", _("as they were told")
    COMPACTED = "compacted", _("compacted")
    COARSE = "coarse", _("coarse levels only")


class Attempt(Figures):
    """One try. It is written only while its fence is its job's fence, and never again once `outcome` is set.

    The form in which its points are stored still changes then, and nothing else.
    """

    job = models.ForeignKey("Job", on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveSmallIntegerField()
    fence = models.PositiveBigIntegerField()
    worker = models.ForeignKey("Worker", null=True, blank=True, on_delete=models.SET_NULL, related_name="attempts")
    supervisor_pid = models.PositiveIntegerField(null=True, blank=True)
    tree_tag = models.CharField(max_length=32, blank=True)  # in the environment of the supervisor and all below it
    outcome = models.CharField(max_length=20, choices=OUTCOME_CHOICES, null=True, blank=True)  # noqa: DJ001 null: not ended
    phase = models.CharField(max_length=30, blank=True)

    claimed_at = models.DateTimeField(db_index=True)
    running_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField()
    lease_expires_at = models.DateTimeField(db_index=True)

    # What the engine said when it started: every open choice resolved, and what it runs on.
    resolved_spec = models.JSONField(null=True, blank=True)
    versions = models.JSONField(default=dict)
    hardware = models.JSONField(null=True, blank=True)  # `contract.facts.Hardware`; null where nobody told
    device_name = models.CharField(max_length=200, blank=True)
    dataset_revision = models.CharField(max_length=100, blank=True)
    workload_key = models.CharField(max_length=16, blank=True)
    environment_key = models.CharField(max_length=16, blank=True)
    findings = models.JSONField(default=list)

    # Where it went on from; null for an attempt that began anew. Its own points begin after that step.
    resumed_from = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    resumed_at_step = models.BigIntegerField(null=True, blank=True)

    artifacts = models.JSONField(default=list)  # what `contract.events.Artifact` tells, in order

    # Progress while it runs.
    num_points = models.BigIntegerField(default=0)
    last_step = models.BigIntegerField(default=0)
    num_flushes = models.PositiveIntegerField(default=0)  # of points; the next one has this sequence
    curve_form = models.CharField(max_length=10, choices=CurveForm.choices, default=CurveForm.AS_TOLD)

    # How it ended. `summary` is all of `contract.metrics.Summary`; the figures that are ranked are columns too.
    error = models.JSONField(null=True, blank=True)
    summary = models.JSONField(default=dict)

    class Meta:
        verbose_name = _("attempt")
        verbose_name_plural = _("attempts")
        ordering = ["job", "number"]
        indexes = [
            models.Index(fields=["outcome"], name="attempt_by_outcome"),
            models.Index(fields=["curve_form", "ended_at"], name="attempt_by_curve_form"),
            models.Index(fields=["workload_key", "environment_key", "steady_step_time_ms"], name="attempt_by_board"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["job", "number"], name="one_attempt_per_number"),
            models.UniqueConstraint(fields=["job", "fence"], name="one_attempt_per_fence"),
        ]

    def __str__(self) -> str:
        return f"job {self.job_id}, attempt {self.number}"

    @property
    def hostnames(self) -> list[str]:
        """Its hosts, node 0 first; where there are many attempts, fetch `nodes__worker` with them."""
        workers = [self.worker, *(node.worker for node in self.nodes.all())]
        return [worker.hostname for worker in workers if worker]

    @property
    def measured(self) -> Summary:
        """The stored summary as the contract's type."""
        return Summary.model_validate(self.summary)
