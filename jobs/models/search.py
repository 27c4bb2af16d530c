"""A search for the fastest configuration that fits: what was asked, and how far it is."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from jobs.contract.spec import TrainSpec, parse_spec
from jobs.contract.stored import StoredSpec, read_stored_spec
from jobs.search_points import Space


class SearchStage(models.TextChoices):
    """Where a search stands."""

    SCREENING = "screening", _("Screening")
    FINALS = "finals", _("Finals")
    DONE = "done", _("Done")
    STOPPED = "stopped", _("Stopped")


OPEN_STAGES = (SearchStage.SCREENING, SearchStage.FINALS)


class Search(models.Model):
    """Its runs are jobs of two studies: short ones that screen, and the finalists beside the base at full length.

    Where the base does not run to its end, another configuration stands in its place in the finals.

    What comes next follows from these rows alone, so that any host may go on with it after a restart.
    """

    team = models.ForeignKey("Team", on_delete=models.PROTECT, related_name="searches")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="searches")
    queue = models.ForeignKey("Queue", on_delete=models.PROTECT, related_name="searches")
    name = models.CharField(_("name"), max_length=150)
    base = models.JSONField()  # the spec that all are held against
    axes = models.JSONField()  # names of axes with their changes, as in `contract.search_space`
    short_steps = models.PositiveIntegerField()  # of a screening run
    num_repeats = models.PositiveSmallIntegerField()  # in the finals
    memory_budget_bytes = models.BigIntegerField(null=True, blank=True)
    # The type of device that all its runs keep to, as in `Study.device_names`; empty: its first run decides.
    device_names = models.JSONField(default=dict, blank=True)
    loss_margin = models.FloatField(null=True, blank=True)  # None: the work's own
    stage = models.CharField(max_length=10, choices=SearchStage.choices, default=SearchStage.SCREENING)
    points = models.JSONField(default=list, blank=True)  # those that ran, the base first: their places in the screening
    left_out = models.JSONField(default=list, blank=True)  # points that may not run, each with its sentence
    note = models.TextField(blank=True)  # why it was stopped
    num_rounds = models.PositiveIntegerField(default=0)  # a round is queued by whoever finds this unchanged
    estimates_asked_at = models.DateTimeField(null=True, blank=True)  # since when the round waits for estimates
    screening = models.OneToOneField(
        "Study", null=True, blank=True, on_delete=models.PROTECT, related_name="screening_of"
    )
    finals = models.OneToOneField("Study", null=True, blank=True, on_delete=models.PROTECT, related_name="finals_of")
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("search")
        verbose_name_plural = _("searches")
        ordering = ["-pk"]
        indexes = [
            models.Index(fields=["team", "-id"], name="search_by_team"),
            models.Index(fields=["stage"], name="search_by_stage"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.pk})"

    @property
    def base_spec(self) -> TrainSpec:
        """The stored base as the contract's type; raises `InvalidSpec` where this version cannot read it."""
        return parse_spec(self.base)

    @property
    def stored_base(self) -> StoredSpec:
        """The base as far as this version can read it."""
        return read_stored_spec(self.base)

    @property
    def space(self) -> Space:
        """What it searches."""
        return Space(tuple(tuple(axis) for axis in self.axes.values()))

    @property
    def is_open(self) -> bool:
        """Whether there is more to run or to judge."""
        return self.stage in OPEN_STAGES
