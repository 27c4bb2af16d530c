"""A job: one training specification that a team asked for, and where it stands."""

import time

from django.conf import settings
from django.db import models
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce
from django.utils.translation import gettext_lazy as _

from jobs.contract.spec import TrainSpec, parse_spec
from jobs.contract.states import ENDED_STATES, LIVE_STATES, Outcome, State
from jobs.contract.stored import StoredSpec, read_stored_spec
from jobs.models.figures import RANKED_METRICS, Figures
from jobs.models.tag import JobTag

# Labels stand here, not in the contract: they are the web's words for its states.
STATE_LABELS = {
    State.QUEUED: _("Queued"),
    State.STARTING: _("Starting"),
    State.RUNNING: _("Running"),
    State.SUCCEEDED: _("Succeeded"),
    State.FAILED: _("Failed"),
    State.OUT_OF_MEMORY: _("Out of memory"),
    State.DIVERGED: _("Diverged"),
    State.TIMED_OUT: _("Timed out"),
    State.CANCELLED: _("Cancelled"),
    State.LOST: _("Lost"),
}
STATE_CHOICES = [(state.value, label) for state, label in STATE_LABELS.items()]
OUTCOME_CHOICES = [(outcome.value, STATE_LABELS[State(outcome.value)]) for outcome in Outcome]


class Origin(models.TextChoices):
    """Where a job's run was made."""

    SUBMITTED = "submitted", _("Submitted here")
    IMPORTED = "imported", _("Imported")


# A list sorted by a ranked figure reads one of these indexes from its one end, for each team that is looked at, and
# for one model, kind of device or outcome of it. Only ended jobs stand in them, so that a change of state costs nothing
# here. Outcome and time come along, so that a list narrowed to them is told from the index alone.
_RANKED_WITHIN = {
    "t": ["team"],
    "tm": ["team", "model"],
    "td": ["team", "device_kind"],
    "to": ["team", "outcome"],
}


def _ranking_indexes() -> list[models.Index]:
    return [
        models.Index(
            fields=[*within, metric, *(name for name in ("id", "outcome", "created_at") if name not in within)],
            condition=models.Q(**{f"{metric}__isnull": False}),
            name=f"job_{short}_{metric}",
        )
        for metric in RANKED_METRICS
        for short, within in _RANKED_WITHIN.items()
    ]


class Job(Figures):
    """What was asked for. Its state changes only by guarded updates in `jobs.services`; `fence` names the owner.

    Its figures are those of the attempt that it ended with, finite ones only; a job that has not ended has none.
    """

    listed_tags: list[JobTag]  # only where a list has read the tags of all its jobs at once

    team = models.ForeignKey("Team", on_delete=models.PROTECT, related_name="jobs")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="jobs")
    queue = models.ForeignKey("Queue", on_delete=models.PROTECT, related_name="jobs")
    name = models.CharField(_("name"), max_length=200, blank=True)
    spec = models.JSONField()

    state = models.CharField(max_length=20, choices=STATE_CHOICES, default=State.QUEUED.value)
    outcome = models.CharField(max_length=20, choices=OUTCOME_CHOICES, null=True, blank=True)  # noqa: DJ001 null: not ended
    priority = models.SmallIntegerField(_("priority"), default=0)
    # Its place among jobs of the same priority, lowest first: the time when it was queued, until somebody moves it.
    order_key = models.FloatField(default=time.time)
    # What the claim asks of the spec, told by the database itself so that it cannot differ from the spec.
    device_kind = models.GeneratedField(
        expression=KT("spec__device"), output_field=models.CharField(max_length=10), db_persist=True
    )
    num_devices = models.GeneratedField(
        expression=Cast(KT("spec__num_devices"), models.IntegerField()),
        output_field=models.IntegerField(),
        db_persist=True,
    )
    num_nodes = models.GeneratedField(  # specs of before there were several nodes do not tell
        expression=Coalesce(Cast(KT("spec__num_nodes"), models.IntegerField()), 1),
        output_field=models.IntegerField(),
        db_persist=True,
    )
    # What lists are narrowed by most.
    model = models.GeneratedField(
        expression=KT("spec__model"), output_field=models.CharField(max_length=100), db_persist=True
    )
    dataset = models.GeneratedField(
        expression=KT("spec__dataset"), output_field=models.CharField(max_length=100), db_persist=True
    )
    precision = models.GeneratedField(
        expression=KT("spec__precision"), output_field=models.CharField(max_length=20), db_persist=True
    )
    fence = models.PositiveBigIntegerField(default=0)
    max_attempts = models.PositiveSmallIntegerField(default=3)
    last_attempt = models.ForeignKey("Attempt", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")

    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    cancel_requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    cancel_reason = models.CharField(max_length=500, blank=True)

    # The study that it is a run of, and the place of its configuration there; null for a job by itself.
    study = models.ForeignKey("Study", null=True, blank=True, on_delete=models.SET_NULL, related_name="jobs")
    study_place = models.PositiveSmallIntegerField(null=True, blank=True)

    # The job whose memory ran out, where this one does its work in smaller micro-batches; at most one does.
    smaller_of = models.OneToOneField("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="smaller")

    origin = models.CharField(max_length=10, choices=Origin.choices, default=Origin.SUBMITTED)
    imported_sha256 = models.CharField(max_length=64, blank=True)  # of the result file, so that it comes in once

    created_at = models.DateTimeField(auto_now_add=True)
    queued_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["team", "-id"], name="job_by_team"),
            # The line of all queues, and that of one, so that the next job is found without sorting those that wait.
            models.Index(fields=["state", "-priority", "order_key", "id"], name="job_by_turn"),
            models.Index(fields=["state", "queue", "-priority", "order_key", "id"], name="job_by_line"),
            # Whether any job of several nodes waits, which each claim asks.
            models.Index(fields=["state", "num_nodes"], name="job_by_nodes"),
            # Holds all that the live pages count, so that they read no row of a job, and only the jobs that they count:
            # it stays small among a million that have ended. Who asks for them says `outcome=None`.
            models.Index(
                fields=["state", "queue", "queued_at", "team", "fence", "cancel_requested_at"],
                condition=models.Q(outcome__isnull=True),
                name="job_open",
            ),
            # The newest of a team's runs of one kind, and how many there are.
            models.Index(fields=["owner", "team", "-id"], name="job_by_owner"),
            models.Index(fields=["team", "model", "-id"], name="job_by_model"),
            models.Index(fields=["team", "device_kind", "-id"], name="job_by_device"),
            models.Index(fields=["team", "outcome", "-id"], name="job_by_outcome"),
            models.Index(fields=["team", "created_at", "id"], name="job_by_time"),
            # What has just ended: of all, and of a team.
            models.Index(fields=["ended_at"], condition=models.Q(ended_at__isnull=False), name="job_by_end"),
            models.Index(
                fields=["team", "ended_at"], condition=models.Q(ended_at__isnull=False), name="job_by_team_end"
            ),
            *_ranking_indexes(),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["team", "imported_sha256"],
                condition=~models.Q(imported_sha256=""),
                name="one_job_per_imported_file",
            ),
            models.CheckConstraint(
                name="outcome_exactly_when_ended",
                condition=models.Q(outcome__isnull=True, state__in=["queued", "starting", "running"])
                | models.Q(outcome__isnull=False, state=models.F("outcome")),
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.pk} {self.title}"

    @property
    def title(self) -> str:
        """Its name, or what it does."""
        return self.name or f"{self.spec['model']} / {self.spec['dataset']}"

    def tag_names(self) -> list[str]:
        """Its tags, by name."""
        tags = self.listed_tags if hasattr(self, "listed_tags") else self.tags.all()
        return [tag.name for tag in tags]

    @property
    def train_spec(self) -> TrainSpec:
        """The stored spec as the contract's type; raises `InvalidSpec` where this version cannot read it."""
        return parse_spec(self.spec)

    @property
    def stored_spec(self) -> StoredSpec:
        """The spec as far as this version can read it."""
        return read_stored_spec(self.spec)

    @property
    def is_live(self) -> bool:
        """Whether an attempt owns it now."""
        return self.state in LIVE_STATES

    @property
    def has_ended(self) -> bool:
        """Whether its outcome is known."""
        return self.state in ENDED_STATES
