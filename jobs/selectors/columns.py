"""What jobs are told apart by: their fields, and the groups of those that agree in one."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobs.contract.options import Role
from jobs.contract.spec import TrainSpec, fields_with_role
from jobs.messages import option_title
from jobs.models import Job
from jobs.models.job import STATE_LABELS
from jobs.selectors.values import in_words, known_spec

# Jobs that agree in everything that was asked for but the seed are repeats of one configuration.
CONFIGURATION = "configuration"

_DEFAULTS = TrainSpec().model_dump(mode="json")
_ABOUT_JOBS: dict[str, tuple[Promise, Callable[[Job], Any]]] = {
    "name": (_("Name"), lambda job: job.title),
    "owner": (_("Owner"), lambda job: job.owner.get_username()),
    "team": (_("Team"), lambda job: job.team.name),
    "state": (_("State"), lambda job: str(STATE_LABELS[job.state])),  # type: ignore[index]
    "device_name": (_("Ran on"), lambda job: (job.last_attempt and job.last_attempt.device_name) or None),
}


@dataclass(frozen=True)
class Column:
    """One column of a comparison: a job, or the repeats that a group holds together."""

    label: str
    jobs: list[Job]
    place: int  # tells its colour and dash

    @property
    def job_ids(self) -> list[int]:
        """Its jobs in their order."""
        return [job.pk for job in self.jobs]


def field_choices() -> list[tuple[str, str]]:
    """Every field that a legend can name and a group can go by, with its label."""
    spec = [(name, gettext(field.title or name)) for name, field in TrainSpec.model_fields.items()]
    return [(name, str(label)) for name, (label, _read) in _ABOUT_JOBS.items()] + spec


def is_field(name: str) -> bool:
    """Whether there is such a field."""
    return name in _ABOUT_JOBS or name in TrainSpec.model_fields


def columns_of(jobs: Sequence[Job], group: str = "", legend: str = "") -> list[Column]:
    """A column for each job; with `group`, one for all jobs that agree in this field.

    With `legend` a single job is called by that field's value, and those of the same value share their colour.
    """
    if group:
        return _grouped(jobs, group)
    if not legend:
        return [Column(_name(job), [job], place) for place, job in enumerate(jobs)]
    values = [_text(job, legend) for job in jobs]
    places = {value: place for place, value in enumerate(dict.fromkeys(values))}
    return [Column(f"{value} · #{job.pk}", [job], places[value]) for job, value in zip(jobs, values, strict=True)]


def configuration_key(job: Job) -> str:
    """Equal for repeats: everything that was asked for but what pairs them."""
    paired = set(fields_with_role(Role.PAIRING))
    spec = _DEFAULTS | known_spec(job)
    return json.dumps({name: value for name, value in spec.items() if name not in paired}, sort_keys=True)


def _grouped(jobs: Sequence[Job], group: str) -> list[Column]:
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        key = configuration_key(job) if group == CONFIGURATION else _text(job, group)
        groups.setdefault(key, []).append(job)
    labels = _told_apart(list(groups.values())) if group == CONFIGURATION else list(groups)
    return [
        Column(label, members, place)
        for place, (label, members) in enumerate(zip(labels, groups.values(), strict=True))
    ]


def _told_apart(groups: list[list[Job]]) -> list[str]:
    """The configurations' labels; where the fields that fit in are the same in several, with the first job's number."""
    labels = _configuration_labels(groups)
    counts = Counter(labels)
    return [
        label if counts[label] == 1 else f"{label} · #{members[0].pk}"
        for label, members in zip(labels, groups, strict=True)
    ]


def _configuration_labels(groups: list[list[Job]]) -> list[str]:
    """A configuration by the fields in which the groups differ; by its first job's name where that is none."""
    specs = [_DEFAULTS | known_spec(members[0]) for members in groups]
    paired = set(fields_with_role(Role.PAIRING))
    differing = [
        name for name in _DEFAULTS if name not in paired and any(spec[name] != specs[0][name] for spec in specs)
    ]
    if not differing:
        return [members[0].title for members in groups]
    return [
        ", ".join(_value(name, spec[name]) for name in differing[:4]) + (" …" if len(differing) > 4 else "")
        for spec in specs
    ]


def _value(name: str, value: Any) -> str:
    """A value that says what it is of; a word such as `bf16-mixed` says that itself."""
    if isinstance(value, str):
        return value
    return f"{option_title(name)} {in_words(value)}"


def _name(job: Job) -> str:
    return f"#{job.pk} {job.title}"


def _text(job: Job, field: str) -> str:
    if field in _ABOUT_JOBS:
        return in_words(_ABOUT_JOBS[field][1](job))
    spec = known_spec(job)
    return in_words(spec.get(field, _DEFAULTS.get(field)))
