"""Comparable or not: which field of the work or of the ground keeps runs apart."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from jobs.contract.keys import workload
from jobs.contract.stored import read_stored_spec
from jobs.messages import option_title
from jobs.models import Attempt, Job
from jobs.selectors.values import in_words

_GROUND = ("driver", "torch", "engine")
_MOST_VALUES = 4


@dataclass(frozen=True)
class Separation:
    """One field that keeps runs apart."""

    is_of_work: bool  # else of the ground
    field: str
    label: str
    values: list[Any]  # each once, in the order of the runs

    @property
    def words(self) -> str:
        """The field with its values."""
        values = [in_words(value) for value in self.values[:_MOST_VALUES]]
        more = ", …" if len(self.values) > _MOST_VALUES else ""
        return f"{self.label}: {' / '.join(values)}{more}"


@dataclass(frozen=True)
class Comparability:
    """Whether runs may be ranked against each other; runs that have not started yet are not looked at."""

    separations: list[Separation]

    @property
    def is_comparable(self) -> bool:
        """The same work on the same ground."""
        return not self.separations

    @property
    def of_work(self) -> list[Separation]:
        """What other work was done."""
        return [one for one in self.separations if one.is_of_work]

    @property
    def of_ground(self) -> list[Separation]:
        """What other ground it was done on."""
        return [one for one in self.separations if not one.is_of_work]


def comparability(jobs: Sequence[Job]) -> Comparability | None:
    """What keeps these runs apart; None where fewer than two have started."""
    attempts = [job.last_attempt for job in jobs if job.last_attempt and job.last_attempt.workload_key]
    if len(attempts) < 2:
        return None
    return Comparability([*_of_work(attempts), *_of_ground(attempts)])


def _of_work(attempts: Iterable[Attempt]) -> list[Separation]:
    one_of_each = {attempt.workload_key: attempt for attempt in attempts}
    works = [_work(attempt) for attempt in one_of_each.values()]
    names = dict.fromkeys(name for work in works for name in work)
    return [
        Separation(True, name, _label(name), values)
        for name in names
        if len(values := _each_once(work.get(name) for work in works)) > 1
    ]


def _work(attempt: Attempt) -> dict[str, Any]:
    return workload(read_stored_spec(attempt.resolved_spec or {}).spec, attempt.dataset_revision)


def _of_ground(attempts: Sequence[Attempt]) -> list[Separation]:
    grounds = [
        {"device_name": attempt.device_name} | {name: attempt.versions.get(name, "") for name in _GROUND}
        for attempt in {attempt.environment_key: attempt for attempt in attempts}.values()
    ]
    return [
        Separation(False, name, _label(name), values)
        for name in ("device_name", *_GROUND)
        if len(values := _each_once(ground[name] for ground in grounds)) > 1
    ]


def _each_once(values: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def _label(name: str) -> str:
    own = {
        "device_name": _("Device"),
        "driver": _("Driver"),
        "torch": "PyTorch",
        "engine": _("Engine"),
        "global_batch_size": _("Global batch"),
        "dataset_revision": _("Data revision"),
    }
    return own.get(name) or option_title(name)
