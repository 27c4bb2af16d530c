"""What an earlier version stored, as far as today's options can read it, and a finding for each field that they cannot.

It is for showing what was done. What is to run is read strictly: nothing that was asked for is left out in silence.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jobs.contract.errors import InvalidSpec
from jobs.contract.findings import Finding
from jobs.contract.plan import Axis, StudyPlan, parse_plan
from jobs.contract.spec import TrainSpec, parse_spec


@dataclass(frozen=True)
class StoredSpec:
    """A spec; what cannot be read has its default there."""

    spec: TrainSpec
    unread: list[Finding]


@dataclass(frozen=True)
class StoredPlan:
    """A plan without the options and values that cannot be read."""

    plan: StudyPlan
    unread: list[Finding]


def read_stored_spec(stored: Mapping[str, Any]) -> StoredSpec:
    """As much of a stored spec as there are options for."""
    unread = _wrong_in(stored)
    return StoredSpec(parse_spec(_without(stored, unread)), unread)


def read_stored_plan(stored: Mapping[str, Any]) -> StoredPlan:
    """As much of a stored plan as there are options for; what is wrong with a field is told once."""
    own: list[Finding] = []
    try:
        plan = parse_plan(stored)
    except InvalidSpec as error:
        own = error.findings
        plan = parse_plan({"base": {}} | _without(stored, own))
    unread = [
        *own,
        *_wrong_in(plan.base),
        *(wrong for axis in plan.axes for value in axis.values for wrong in _wrong_in({axis.field: value})),
        *(wrong for changes in plan.configurations for wrong in _wrong_in(changes)),
    ]
    readable = {
        "base": _without(plan.base, _wrong_in(plan.base)),
        "axes": [axis for axis in map(_readable, plan.axes) if axis.values],
        "configurations": [_without(changes, _wrong_in(changes)) for changes in plan.configurations],
    }
    return StoredPlan(plan.model_copy(update=readable), _each_once(unread))


def _readable(axis: Axis) -> Axis:
    values = [value for value in axis.values if not _wrong_in({axis.field: value})]
    return axis.model_copy(update={"values": values})


def _wrong_in(options: Mapping[str, Any]) -> list[Finding]:
    """What cannot be read: options are read each for itself, so all of it is found at once."""
    try:
        parse_spec(options)
    except InvalidSpec as error:
        return error.findings
    return []


def _without(stored: Mapping[str, Any], wrong: Iterable[Finding]) -> dict[str, Any]:
    fields = {finding.field.partition(".")[0] for finding in wrong}
    return {name: value for name, value in stored.items() if name not in fields}


def _each_once(findings: Iterable[Finding]) -> list[Finding]:
    return list({(finding.field, finding.sentence): finding for finding in findings}.values())
