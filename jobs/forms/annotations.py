"""What `TrainSpec`'s annotations say about a field: its plain type, its choices, whether it may be empty."""

import types
from enum import StrEnum
from typing import Any, Union, get_args, get_origin

from jobs.contract.spec import TrainSpec


def plain_type(name: str) -> Any:
    """The field's type without `None`."""
    annotation = TrainSpec.model_fields[name].annotation
    if get_origin(annotation) in (Union, types.UnionType):
        return next(part for part in get_args(annotation) if part is not type(None))
    return annotation


def may_be_empty(name: str) -> bool:
    """Whether None is a value of the field."""
    return type(None) in get_args(TrainSpec.model_fields[name].annotation)


def choices_of(name: str) -> list[str]:
    """The values of an enumeration, empty for every other type."""
    kind = plain_type(name)
    return [item.value for item in kind] if isinstance(kind, type) and issubclass(kind, StrEnum) else []


def limits_of(name: str) -> dict[str, Any]:
    """The numeric limits that pydantic holds the field to: `ge`, `gt`, `le`, `lt`."""
    limits: dict[str, Any] = {}
    for rule in TrainSpec.model_fields[name].metadata:
        limits |= {key: getattr(rule, key) for key in ("ge", "gt", "le", "lt") if getattr(rule, key, None) is not None}
    return limits
