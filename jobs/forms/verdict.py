"""What the workers say to a spec while it is being chosen, and which options mean nothing beside the others.

Nothing here knows an option by name: an option is set aside where every other value of it would be refused.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any

from jobs.contract.errors import InvalidSpec
from jobs.contract.findings import Finding
from jobs.contract.rules import check, refusals
from jobs.contract.spec import TrainSpec, parse_spec
from jobs.forms.annotations import choices_of, plain_type
from jobs.messages import translate
from jobs.models import Queue
from jobs.selectors.hosts import abilities, mildest_findings, online_workers

Ask = Callable[[TrainSpec], list[Finding]]


@dataclass(frozen=True)
class Verdict:
    """The answer to one choice of options. `spec` is None where it cannot be read at all."""

    spec: TrainSpec | None
    findings: list[Finding]
    able: list[str] = field(default_factory=list)  # workers online that would take it
    num_workers: int = 0  # workers online that serve the queue
    aside: dict[str, str] = field(default_factory=dict)  # options that mean nothing now, and why
    closed: dict[str, dict[str, str]] = field(default_factory=dict)  # single choices that cannot be had, and why

    @property
    def refused(self) -> list[Finding]:
        """What stops the job."""
        return refusals(self.findings)


def judge(data: Mapping[str, Any], queue: Queue | None) -> Verdict:
    """Ask the queue's workers; without one online, only the rules that need no machine."""
    try:
        spec = parse_spec(data)
    except InvalidSpec as error:
        return Verdict(None, error.findings)
    workers = list(online_workers().filter(queues=queue)) if queue else []
    hosts = [abilities(worker) for worker in workers]
    ask: Ask = partial(mildest_findings, hosts=hosts)
    return Verdict(
        spec=spec,
        findings=ask(spec),
        able=[worker.hostname for worker, host in zip(workers, hosts, strict=True) if not refusals(check(spec, *host))],
        num_workers=len(workers),
        aside=_set_aside(spec, ask),
        closed=_closed_choices(spec, ask),
    )


def _set_aside(spec: TrainSpec, ask: Ask) -> dict[str, str]:
    """Options that stand at their default and of which every other value would be refused."""
    aside = {}
    for name, info in TrainSpec.model_fields.items():
        others = list(_other_values(name, getattr(spec, name)))
        if getattr(spec, name) != info.get_default() or not others:
            continue
        reasons = [_new_refusal(spec, name, value, ask) for value in others]
        if all(reasons):
            aside[name] = reasons[0]
    return aside


def _closed_choices(spec: TrainSpec, ask: Ask) -> dict[str, dict[str, str]]:
    """Values of an enumeration that would be refused where the present one is not."""
    closed: dict[str, dict[str, str]] = {}
    for name in TrainSpec.model_fields:
        for value in _other_values(name, getattr(spec, name)) if choices_of(name) else ():
            reason = _new_refusal(spec, name, value, ask, only_here=True)
            if reason:
                closed.setdefault(name, {})[str(value)] = reason
    return closed


def _other_values(name: str, value: Any) -> Iterator[Any]:
    kind = plain_type(name)
    if kind is bool:
        yield not value
    elif kind in (int, float):
        yield 1 if value is None else value + 1
    elif isinstance(kind, type) and issubclass(kind, StrEnum):
        yield from (choice for choice in kind if choice != value)


def _new_refusal(spec: TrainSpec, name: str, value: Any, ask: Ask, *, only_here: bool = False) -> str:
    """Why `value` cannot be chosen, leaving out what is refused already; empty where it can."""
    before = {finding.code for finding in refusals(ask(spec))}
    after = refusals(ask(spec.model_copy(update={name: value})))
    new = [finding for finding in after if finding.code not in before and (finding.field == name or not only_here)]
    return translate(new[0]) if new else ""
