"""What runs are searched, sorted and shown by: one table for the page, its text query, the API and the CSV.

Every option of `TrainSpec` and every figure of `Summary` is in it by its own name; nothing lists them again.
"""

import types
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Union, get_args, get_origin

from django.db.models import Expression, F, Value
from django.db.models.functions import Coalesce, NullIf, TruncSecond
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from pydantic.fields import FieldInfo

from jobs.contract.metrics import Summary
from jobs.contract.options import metadata
from jobs.contract.spec import TrainSpec
from jobs.contract.states import Outcome, State
from jobs.models import Job
from jobs.models.figures import RANKED_METRICS
from jobs.selectors.json_value import JsonNumber, JsonText


class Kind(StrEnum):
    """What values a field has, and so how it is compared."""

    NUMBER = "number"
    TEXT = "text"
    CHOICE = "choice"
    FLAG = "flag"
    DATE = "date"
    AGE = "age"  # how long ago, as 7d or 12h
    PERSON = "person"
    TAG = "tag"
    STATE = "state"


class Part(StrEnum):
    """Where a field belongs in a menu."""

    JOB = "job"
    SPEC = "spec"
    FIGURE = "figure"


@dataclass(frozen=True)
class RunField:
    """One thing to search, sort or show runs by."""

    name: str
    label: str | Promise
    part: Part
    kind: Kind
    expression: F | Expression | None  # how the database tells it; None: not by one value
    value: Callable[[Job], Any]  # what a job read by `job_pages` shows
    unit: str = ""
    choices: tuple[str, ...] = ()
    can_be_empty: bool = True
    is_indexed: bool = False  # sorted by an index, for each team

    @property
    def can_sort(self) -> bool:
        """Whether there is an order by it."""
        return self.expression is not None and self.kind is not Kind.AGE


def _spec_field(name: str, info: FieldInfo) -> RunField:
    kind, choices, default = _kind_of(info.annotation), _choices_of(info.annotation), _plain(info.default)
    asked: Any = (JsonText if kind in (Kind.TEXT, Kind.CHOICE) else JsonNumber)("spec", name)
    expression: Any = Coalesce(asked, Value(default)) if default is not None else asked
    return RunField(
        name=name,
        label=info.title or name,
        part=Part.SPEC,
        kind=kind,
        expression=F(_OWN_COLUMNS[name]) if name in _OWN_COLUMNS else expression,
        value=lambda job: job.spec.get(name, default),
        unit=metadata(info).get("unit", ""),
        choices=choices,
        can_be_empty=type(None) in get_args(info.annotation),
    )


# Options with a column of their own, under its name.
_OWN_COLUMNS = {"model": "model", "dataset": "dataset", "precision": "precision", "device": "device_kind"}


def _figure(name: str, info: FieldInfo) -> RunField:
    kind = _kind_of(info.annotation)
    told: Any = (JsonText if kind is Kind.TEXT else JsonNumber)("last_attempt__summary", name)
    is_ranked = name in RANKED_METRICS
    return RunField(
        name=name,
        label=info.title or name,
        part=Part.FIGURE,
        kind=kind,
        expression=F(name) if is_ranked else told,
        value=(lambda job: getattr(job, name)) if is_ranked else (lambda job: _summary(job).get(name)),
        unit=metadata(info).get("unit", ""),
        is_indexed=is_ranked,
    )


def _summary(job: Job) -> dict[str, Any]:
    summary: dict[str, Any] = job.last_attempt.summary if job.last_attempt else {}
    return summary


def _plain_type(annotation: Any) -> Any:
    if get_origin(annotation) in (Union, types.UnionType):
        return next(part for part in get_args(annotation) if part is not type(None))
    return annotation


def _kind_of(annotation: Any) -> Kind:
    plain = _plain_type(annotation)
    if plain is bool:
        return Kind.FLAG
    if plain in (int, float):
        return Kind.NUMBER
    return Kind.CHOICE if _choices_of(annotation) else Kind.TEXT


def _choices_of(annotation: Any) -> tuple[str, ...]:
    plain = _plain_type(annotation)
    return tuple(item.value for item in plain) if isinstance(plain, type) and issubclass(plain, StrEnum) else ()


def _plain(value: Any) -> Any:
    """A default as the database compares it: a choice's text, a flag as 0 or 1."""
    if isinstance(value, StrEnum):
        return value.value
    return float(value) if isinstance(value, int | float) else value


def _job_field(
    name: str,
    label: str | Promise,
    kind: Kind,
    source: str | Expression | None,
    value: Callable[[Job], Any],
    **more: Any,
) -> RunField:
    return RunField(name, label, Part.JOB, kind, F(source) if isinstance(source, str) else source, value, **more)


STATE_GROUPS = ("open", "ended", "trouble")

_JOB_FIELDS = [
    _job_field("id", _("Number"), Kind.NUMBER, "id", lambda job: job.pk, can_be_empty=False, is_indexed=True),
    _job_field("name", _("Name"), Kind.TEXT, "name", lambda job: job.name, can_be_empty=False),
    _job_field(
        "state",
        _("State"),
        Kind.STATE,
        "state",
        lambda job: job.state,
        choices=(*STATE_GROUPS, *(state.value for state in State)),
        can_be_empty=False,
    ),
    _job_field(
        "outcome",
        _("Outcome"),
        Kind.CHOICE,
        "outcome",
        lambda job: job.outcome,
        choices=tuple(outcome.value for outcome in Outcome),
    ),
    _job_field(
        "owner", _("Owner"), Kind.PERSON, "owner__username", lambda job: job.owner.get_username(), can_be_empty=False
    ),
    _job_field("team", _("Team"), Kind.TEXT, "team__name", lambda job: job.team.name, can_be_empty=False),
    _job_field("queue", _("Queue"), Kind.TEXT, "queue__name", lambda job: job.queue.name, can_be_empty=False),
    _job_field("tag", _("Tags"), Kind.TAG, None, lambda job: job.tag_names()),
    _job_field(
        "device_name",
        _("Ran on"),
        Kind.TEXT,
        NullIf("last_attempt__device_name", Value("")),
        lambda job: job.last_attempt.device_name if job.last_attempt else None,
    ),
    _job_field("priority", _("Priority"), Kind.NUMBER, "priority", lambda job: job.priority, can_be_empty=False),
    _job_field(
        "origin",
        _("Origin"),
        Kind.CHOICE,
        "origin",
        lambda job: job.origin,
        choices=("submitted", "imported"),
        can_be_empty=False,
    ),
    _job_field(
        "created",
        _("Submitted"),
        Kind.DATE,
        "created_at",
        lambda job: job.created_at,
        can_be_empty=False,
        is_indexed=True,
    ),
    _job_field("age", _("Age"), Kind.AGE, "created_at", lambda job: job.created_at, can_be_empty=False),
    # To the second: SQLite keeps what its own clock said as another text than the same time of Python's.
    _job_field("ended", _("Ended"), Kind.DATE, TruncSecond("ended_at"), lambda job: job.ended_at),
]

_SHORT_NAMES = {
    "step_time_ms": "steady_step_time_ms",
    "device_kind": "device",
    "created_at": "created",
    "ended_at": "ended",
    "tags": "tag",
    "user": "owner",
    "status": "state",
}


@cache
def run_fields() -> dict[str, RunField]:
    """Every field by its name. An option's name means what was asked for, also where a figure has the same."""
    figures = [_figure(name, info) for name, info in Summary.model_fields.items() if name != "device_name"]
    options = [_spec_field(name, info) for name, info in TrainSpec.model_fields.items()]
    return {field.name: field for field in [*figures, *options, *_JOB_FIELDS]}


def find_field(name: str) -> RunField | None:
    """The field of that name or short name."""
    return run_fields().get(_SHORT_NAMES.get(name, name))


def known_names() -> list[str]:
    """All names that a query may use."""
    return [*run_fields(), *_SHORT_NAMES]
