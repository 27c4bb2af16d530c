"""A study: configurations of the same work, repeated over paired seeds, and the margin of equal loss of each work."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from jobs.contract.plan import StudyPlan, parse_plan


class Study(models.Model):
    """What was asked for. Its runs are jobs (`Job.study`, `Job.study_place`); all that is shown follows from them."""

    team = models.ForeignKey("Team", on_delete=models.PROTECT, related_name="studies")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="studies")
    queue = models.ForeignKey("Queue", on_delete=models.PROTECT, related_name="studies")
    name = models.CharField(_("name"), max_length=200)
    plan = models.JSONField()  # `contract.plan.StudyPlan`
    left_out = models.JSONField(
        default=list, blank=True
    )  # configurations that the rules refused: place, changes, findings
    preset = models.CharField(max_length=60, blank=True)  # what it was made of at one click: the claim
    # that it is to show and on what ("amp/cpu"), or the job whose options it takes apart ("ablation/12")
    created_at = models.DateTimeField(auto_now_add=True)
    # While it is paused, none of its runs is claimed; those that run go on.
    paused_at = models.DateTimeField(null=True, blank=True)
    paused_by = models.ForeignKey("User", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    pause_reason = models.CharField(_("pause reason"), max_length=500, blank=True)

    # Whoever has the link sees the report, signed in or not; null: there is no link.
    share_token = models.CharField(max_length=64, null=True, blank=True, unique=True)
    adds_repeats = models.BooleanField(default=False)  # its plan asks for it, and it is not sure yet
    # The types of device that its runs keep to, by their kind, and under "auto" the kind that runs get which name none:
    # those of the first ones (`selectors.study_devices`).
    device_names = models.JSONField(default=dict, blank=True)

    class Meta:
        verbose_name = _("study")
        verbose_name_plural = _("studies")
        ordering = ["-pk"]
        indexes = [
            models.Index(fields=["team", "-id"], name="study_by_team"),
            models.Index(fields=["id"], condition=models.Q(adds_repeats=True), name="study_adds_repeats"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.pk})"

    @property
    def is_paused(self) -> bool:
        """Whether its runs that wait are held."""
        return self.paused_at is not None

    @property
    def devices(self) -> list[str]:
        """The types of device that its runs keep to; empty before the first one has started."""
        return [name for kind, name in self.device_names.items() if kind != "auto"]

    @property
    def study_plan(self) -> StudyPlan:
        """The stored plan as the contract's type; raises `InvalidSpec` where this version cannot read it."""
        return parse_plan(self.plan)


class Workload(models.Model):
    """The margin within which losses of one work count as equal: fixed by its first run, before any candidate's."""

    key = models.CharField(max_length=16, primary_key=True)  # `contract.keys.workload_key`
    loss_margin = models.FloatField()
    # The training loss that runs are timed to, fixed by the first run that fell: nine tenths of its way down.
    target_loss = models.FloatField(null=True, blank=True)
    fixed_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("workload")
        verbose_name_plural = _("workloads")

    def __str__(self) -> str:
        return self.key
