"""Jobs beside each other: where they differ in what was asked, and what each measured."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext

from jobs.contract.metrics import Better, Summary
from jobs.contract.options import metadata
from jobs.contract.spec import TrainSpec
from jobs.models import Job
from jobs.selectors.values import known_spec

# What says how fast a run was; a run that was resumed has no such time of its own.
_UNITS_OF_TIME = ("s", "ms", "samples/s", "tokens/s", "FLOP/s")
_METRICS_OF_TIME = ("mfu", "energy_j")


@dataclass(frozen=True)
class DiffRow:
    """One thing in which jobs may differ, with a value per job."""

    field: str
    label: str
    unit: str
    values: list[Any]

    @property
    def differs(self) -> bool:
        """Whether one of the jobs has another value than the first."""
        return _differ(self.values)


@dataclass(frozen=True)
class MetricRow:
    """One figure that at least one job measured, with a value per job (None where it is missing)."""

    name: str
    label: str
    unit: str
    better: Better
    values: list[Any]
    ranked: list[Any]  # the same without those of runs in two parts, which never rank on time
    best: int | None  # index of the best value, None where none is better than another


@dataclass(frozen=True)
class Comparison:
    """Some jobs in the order in which they were given; every list of values runs along `jobs`."""

    jobs: list[Job]
    options: list[DiffRow]  # every spec field
    circumstances: list[DiffRow]  # how it ended and on what it ran, where that differs
    metrics: list[MetricRow]

    @property
    def diff(self) -> list[DiffRow]:
        """The spec fields in which the jobs differ."""
        return [row for row in self.options if row.differs]

    def metric(self, name: str) -> MetricRow | None:
        """One figure by its name, None where no job measured it."""
        return next((row for row in self.metrics if row.name == name), None)


def compare(jobs: Sequence[Job]) -> Comparison:
    """Hold jobs against each other. Their last attempts should come with them (`visible_jobs`); no query more."""
    return Comparison(
        jobs=list(jobs), options=spec_rows(jobs), circumstances=_circumstances(jobs), metrics=_metrics(jobs)
    )


def spec_rows(jobs: Sequence[Job]) -> list[DiffRow]:
    """Every spec field. A spec stored before a field was added counts with its default."""
    specs = [known_spec(job) for job in jobs]
    defaults = TrainSpec().model_dump(mode="json")
    return [
        DiffRow(
            name,
            gettext(field.title or name),
            _translated(metadata(field).get("unit", "")),
            [spec.get(name, defaults[name]) for spec in specs],
        )
        for name, field in TrainSpec.model_fields.items()
    ]


def _circumstances(jobs: Sequence[Job]) -> list[DiffRow]:
    """How the jobs stand, and what they ran on; a job that has not started does not differ in the latter."""
    attempts = [job.last_attempt for job in jobs]
    versions = [attempt.versions if attempt else {} for attempt in attempts]
    names = dict.fromkeys(name for known in versions for name in known)
    standing = [
        DiffRow("state", gettext("State"), "", [job.state for job in jobs]),
        DiffRow("outcome", gettext("Outcome"), "", [job.outcome for job in jobs]),
    ]
    ground = [
        DiffRow(
            "device_name", gettext("Ran on"), "", [(attempt and attempt.device_name) or None for attempt in attempts]
        ),
        *(DiffRow(f"versions.{name}", name, "", [known.get(name) for known in versions]) for name in names),
    ]
    return [row for row in standing if row.differs] + [row for row in ground if _differ(_known(row.values))]


def _metrics(jobs: Sequence[Job]) -> list[MetricRow]:
    summaries = [job.last_attempt.measured if job.last_attempt else Summary() for job in jobs]
    went_on = [job.last_attempt is not None and job.last_attempt.resumed_at_step is not None for job in jobs]
    rows = []
    for name, field in Summary.model_fields.items():
        values = [getattr(summary, name) for summary in summaries]
        if any(value is not None for value in values):
            extra = metadata(field)
            better = Better(extra["better"])
            ranked = _ranked(values, went_on) if _is_of_time(name) else values
            label, unit = gettext(field.title or name), _translated(extra["unit"])
            rows.append(MetricRow(name, label, unit, better, values, ranked, index_of_best(ranked, better)))
    return rows


def _is_of_time(name: str) -> bool:
    return metadata(Summary.model_fields[name])["unit"] in _UNITS_OF_TIME or name in _METRICS_OF_TIME


def _ranked(values: list[Any], went_on: list[bool]) -> list[Any]:
    """Without those of runs in two parts, which never rank on time."""
    return [None if resumed else value for value, resumed in zip(values, went_on, strict=True)]


def index_of_best(values: Sequence[Any], better: Better) -> int | None:
    """Where the best finite value stands; None where nothing was measured twice or all is equal."""
    if better is Better.NEITHER:
        return None
    finite = {index: value for index, value in enumerate(values) if value is not None and math.isfinite(value)}
    if len(finite) < 2 or len(set(finite.values())) == 1:
        return None
    choose: Callable[..., int] = min if better is Better.LOWER else max
    return choose(finite, key=finite.__getitem__)


def _differ(values: Sequence[Any]) -> bool:
    return any(value != values[0] for value in values[1:])


def _known(values: Sequence[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def _translated(text: str) -> str:
    """gettext of an empty text would be the catalog's header."""
    return gettext(text) if text else ""
