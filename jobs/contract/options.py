"""How an option of a training job is declared: its value's rules, and all that a form, a schema or a key needs."""

from enum import StrEnum
from typing import Any

from pydantic import Field
from pydantic.fields import FieldInfo


class Role(StrEnum):
    """What an option is for when two runs are compared."""

    WORKLOAD = "workload"  # says what work is done; runs that differ here are never ranked together
    CONFIGURATION = "configuration"  # says how it is done; this is what a leaderboard compares
    PAIRING = "pairing"  # pairs repeats (the seed); in neither key


class Group(StrEnum):
    """The section of a form that an option stands in."""

    WORK = "work"
    HARDWARE = "hardware"
    BATCH = "batch"
    OPTIMIZATION = "optimization"
    DATA = "data"
    MEASUREMENT = "measurement"


def option(
    default: Any,
    *,
    label: str,
    help_text: str,
    group: Group,
    role: Role,
    unit: str = "",
    advanced: bool = False,
    **limits: Any,
) -> Any:
    """A field of `TrainSpec`: `limits` are pydantic's (`gt`, `ge`, `le`, ...); texts are English message ids.

    An advanced option is one that most jobs leave alone: a form shows it on request.
    """
    extra: dict[str, Any] = {"group": group.value, "role": role.value, "unit": unit, "advanced": advanced}
    return Field(default, title=label, description=help_text, json_schema_extra=extra, **limits)


def metadata(field: FieldInfo) -> dict[str, Any]:
    """The group, role, unit and rank (`advanced`) that `option` put on a field."""
    extra = field.json_schema_extra
    return dict(extra) if isinstance(extra, dict) else {}
