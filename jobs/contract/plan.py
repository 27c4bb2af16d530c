"""What a study asks: one base spec, the fields that vary, and how often each configuration is repeated.

A plan expands to configurations; the first is the base itself, the baseline that all others are held against. Repeat
`r` of every configuration has the seed `base.seed + r`, which pairs the repeats of two configurations.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jobs.contract.errors import InvalidSpec
from jobs.contract.findings import findings_from_validation
from jobs.contract.messages import gettext_noop as _
from jobs.contract.rules.table import refuse
from jobs.contract.spec import TrainSpec, parse_spec

MOST_RUNS = 500
MOST_REPEATS = 15


class Arrangement(StrEnum):
    """How the values of several axes are put together."""

    GRID = "grid"  # every value of one with every value of the others
    ONE_AT_A_TIME = "one-at-a-time"  # each value by itself, all else as in the base
    LIST = "list"  # only what is written down, configuration by configuration


class Axis(BaseModel):
    """A field of the spec and the values that it takes."""

    model_config = ConfigDict(extra="forbid")

    field: str
    values: list[Any] = Field(min_length=1, max_length=100)


class StudyPlan(BaseModel):
    """A study as it was asked for; `configurations` come after what the axes make, each as the fields it changes."""

    model_config = ConfigDict(extra="forbid")

    base: dict[str, Any]
    arrangement: Arrangement = Arrangement.GRID
    axes: list[Axis] = Field(default_factory=list, max_length=8)
    configurations: list[dict[str, Any]] = Field(default_factory=list, max_length=MOST_RUNS)
    num_repeats: int = Field(3, ge=1, le=MOST_REPEATS)
    until_sure: bool = False  # repeats are added until every time is known within 2 %, no further than `MOST_REPEATS`

    @property
    def most_repeats(self) -> int:
        """How many repeats it may come to."""
        return MOST_REPEATS if self.until_sure else self.num_repeats


class Extension(BaseModel):
    """What a study shall have on top: so many repeats in all, further values or fields, further configurations."""

    model_config = ConfigDict(extra="forbid")

    num_repeats: int | None = Field(None, ge=1, le=MOST_REPEATS)
    axes: list[Axis] = Field(default_factory=list, max_length=8)
    configurations: list[dict[str, Any]] = Field(default_factory=list, max_length=MOST_RUNS)


@dataclass(frozen=True)
class Configuration:
    """One way to do the work: what it changes about the base, and the whole spec."""

    place: int  # 0 is the baseline
    changes: dict[str, Any]
    spec: TrainSpec


def parse_plan(data: Mapping[str, Any]) -> StudyPlan:
    """The plan in a mapping; raises `InvalidSpec`. What it says of options is read only where it is expanded."""
    try:
        return StudyPlan.model_validate(data)
    except ValidationError as error:
        raise InvalidSpec(findings_from_validation(error)) from error


def expand(plan: StudyPlan) -> list[Configuration]:
    """The configurations of a plan, the baseline first, each once.

    Raises `InvalidSpec` with the field of an axis or of the base where a value cannot be read, or where the plan makes
    nothing to compare or too much of it.
    """
    base = parse_spec(plan.base)
    _require_fields(plan)
    found = {base.model_dump_json(): base}
    for asked in _all_changes(plan):
        spec = parse_spec(_length_of(plan.base, asked) | asked)
        found.setdefault(spec.model_dump_json(), spec)
        if len(found) * plan.most_repeats > MOST_RUNS:
            raise _refusal("axes", _("A study may have at most %(limit)s runs; this one has more."), limit=MOST_RUNS)
    if len(found) == 1:
        raise _refusal("axes", _("Nothing varies here: give a field at least one value that the base does not have."))
    return [Configuration(place, _real_changes(base, spec), spec) for place, spec in enumerate(found.values())]


def extend(plan: StudyPlan, by: Extension) -> StudyPlan:
    """The plan with what comes on top. Its configurations keep their places, new ones stand behind them.

    Raises `InvalidSpec` as `expand` does, and where fewer repeats are asked for than the plan has.
    """
    num_repeats = plan.num_repeats if by.num_repeats is None else by.num_repeats
    if num_repeats < plan.num_repeats:
        message = _("The study has %(have)s repeats already; ask for at least as many.")
        raise _refusal("num_repeats", message, have=plan.num_repeats)
    known = [configuration.spec for configuration in expand(plan)]
    wider = plan.model_copy(
        update={
            "arrangement": Arrangement.GRID if plan.arrangement is Arrangement.LIST else plan.arrangement,
            "axes": by.axes if plan.arrangement is Arrangement.LIST else _merged(plan.axes, by.axes),
            "configurations": [*plan.configurations, *by.configurations],
            "num_repeats": num_repeats,
        }
    )
    new = [one.changes for one in expand(wider) if one.spec not in known]
    return plan.model_copy(update={"configurations": [*plan.configurations, *new], "num_repeats": num_repeats})


def _merged(axes: list[Axis], more: list[Axis]) -> list[Axis]:
    """Each field once, the values of both one after the other."""
    values: dict[str, list[Any]] = {}
    for axis in [*axes, *more]:
        values.setdefault(axis.field, []).extend(axis.values)
    return [Axis.model_construct(field=field, values=some) for field, some in values.items()]


def interleaved(num_configurations: int, num_repeats: int) -> Iterator[tuple[int, int]]:
    """(place, repeat) in the order A B B A: what drifts slowly meets all configurations alike."""
    places = range(num_configurations)
    for repeat in range(num_repeats):
        yield from ((place, repeat) for place in (places if repeat % 2 == 0 else reversed(places)))


def repeat_of(configuration: Configuration, repeat: int) -> TrainSpec:
    """The spec of one run."""
    return configuration.spec.model_copy(update={"seed": configuration.spec.seed + repeat})


def _require_fields(plan: StudyPlan) -> None:
    named = [axis.field for axis in plan.axes] + [name for changes in plan.configurations for name in changes]
    for name in named:
        if name not in TrainSpec.model_fields:
            raise _refusal("axes", _("There is no option “%(name)s”."), name=name)
        if name == "seed":
            raise _refusal("axes", _("The seed pairs the repeats; it cannot vary between configurations."))
    fields = [axis.field for axis in plan.axes]
    if twice := next((name for name in fields if fields.count(name) > 1), None):
        raise _refusal("axes", _("“%(name)s” varies twice."), name=twice)


def _all_changes(plan: StudyPlan) -> Iterator[dict[str, Any]]:
    if plan.arrangement is Arrangement.ONE_AT_A_TIME:
        yield from ({axis.field: value} for axis in plan.axes for value in axis.values)
    elif plan.arrangement is Arrangement.GRID:
        names = [axis.field for axis in plan.axes]
        yield from (dict(zip(names, values, strict=True)) for values in product(*(axis.values for axis in plan.axes)))
    yield from plan.configurations


def _length_of(base: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
    """The base without its own length where a configuration brings one of the other kind: steps and epochs exclude."""
    other = {"num_steps": "num_epochs", "num_epochs": "num_steps"}
    dropped = {other[name] for name in asked if name in other and asked[name] is not None}
    return {name: None if name in dropped else value for name, value in base.items()}


def _real_changes(base: TrainSpec, spec: TrainSpec) -> dict[str, Any]:
    before, after = base.model_dump(mode="json"), spec.model_dump(mode="json")
    return {name: value for name, value in after.items() if value != before[name]}


def _refusal(field: str, message: str, **params: Any) -> InvalidSpec:
    return InvalidSpec([refuse(field, message, **params)])
