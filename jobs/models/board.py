"""What the leaderboard reads: a board for each work on each ground, an entry for each configuration on it.

Both are kept by `jobs.services.boards` when a run ends, so that a page costs the same over a million runs as over ten;
`manage.py rebuild_boards` makes them anew from the attempts.
"""

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from jobs.models.job import Job


class Board(models.Model):
    """One team's runs of one work in one environment; only these are ranked against each other."""

    team = models.ForeignKey("Team", on_delete=models.CASCADE, related_name="boards")
    workload_key = models.CharField(max_length=16)
    environment_key = models.CharField(max_length=16)
    workload = models.JSONField()  # `contract.keys.workload`
    model = models.CharField(max_length=100)
    dataset = models.CharField(max_length=100)
    device_name = models.CharField(max_length=200, blank=True)
    versions = models.JSONField(default=dict)
    num_runs = models.PositiveIntegerField(default=0)
    first_ended_at = models.DateTimeField()
    last_ended_at = models.DateTimeField()
    # All others are held against it: the configuration of the first run that succeeded here, until somebody changes it.
    baseline = models.ForeignKey("BoardEntry", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        verbose_name = _("board")
        verbose_name_plural = _("boards")
        ordering = ["-last_ended_at", "-pk"]
        indexes = [models.Index(fields=["team", "-last_ended_at"], name="board_by_team")]
        constraints = [
            models.UniqueConstraint(fields=["team", "workload_key", "environment_key"], name="one_board_per_keys")
        ]

    def __str__(self) -> str:
        return f"{self.model} / {self.dataset} ({self.device_name})"


class BoardEntry(models.Model):
    """One configuration on a board, with the figures of some of its runs (`jobs.board_runs.BoardRun`)."""

    board = models.ForeignKey("Board", on_delete=models.CASCADE, related_name="entries")
    configuration_key = models.CharField(max_length=16)  # `contract.keys.configuration_key`
    configuration = models.JSONField()  # `contract.keys.configuration`
    runs = models.JSONField(default=list)  # that succeeded, the oldest of them first; see `jobs.board_runs.kept_runs`
    courses = models.JSONField(default=dict)  # how their training losses fell, by job: `jobs.loss_course`
    outcomes = models.JSONField(default=dict)  # how many of all its runs ended how
    step_time_ms = models.FloatField(null=True, blank=True)  # the median over `runs`
    last_ended_at = models.DateTimeField()

    class Meta:
        verbose_name = _("board entry")
        verbose_name_plural = _("board entries")
        ordering = ["pk"]
        indexes = [models.Index(fields=["board", "step_time_ms"], name="entry_by_step_time")]
        constraints = [models.UniqueConstraint(fields=["board", "configuration_key"], name="one_entry_per_key")]

    def __str__(self) -> str:
        return f"{self.board_id}: {self.configuration_key}"


class Agreement(models.TextChoices):
    """What came of measuring a configuration again."""

    OPEN = "", _("being reproduced")
    AGREED = "agreed", _("verified")  # shown to be close, see `jobs.reproduction`
    DIFFERED = "differed", _("not reproduced")
    UNSURE = "unsure", _("not enough to tell")
    MOVED = "moved", _("ran on other ground")  # another device or other versions, so that nothing can be said
    STOPPED = "stopped", _("stopped")  # too few runs ended by themselves; queued again, they may still tell


UNDECIDED = (Agreement.OPEN, Agreement.STOPPED)


class Reproduction(models.Model):
    """A configuration's repeats queued again, seed by seed, and whether they agreed with what was measured before."""

    entry = models.ForeignKey("BoardEntry", on_delete=models.CASCADE, related_name="reproductions")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    jobs: "models.ManyToManyField[Job, models.Model]" = models.ManyToManyField("Job", related_name="reproductions")
    originals = models.JSONField()  # the runs that are measured again, as the entry held them
    agreement = models.CharField(max_length=10, choices=Agreement.choices, default=Agreement.OPEN, blank=True)
    finding = models.JSONField(default=dict)  # ratio, low, high and n of the step times, new to old; loss: its verdict
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("reproduction")
        verbose_name_plural = _("reproductions")
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.entry} again ({self.pk})"
