"""The table of rules and what a rule may look at. A rule looks at the spec and, where it needs to know
the machine, at the facts of one host; without facts such a rule says nothing, and the engine asks again on the real
device.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from jobs.contract.catalog import Catalog
from jobs.contract.facts import DeviceFacts, HostFacts
from jobs.contract.findings import Finding, Severity
from jobs.contract.lengths import length_in_steps
from jobs.contract.spec import DeviceKind, TrainSpec


@dataclass(frozen=True)
class Situation:
    """What a rule may look at; `facts` is None where the host is not known yet."""

    spec: TrainSpec
    facts: HostFacts | None
    catalog: Catalog

    @property
    def device_kind(self) -> str | None:
        """The kind of device that the job will run on, None while `auto` is open."""
        if self.spec.device is not DeviceKind.AUTO:
            return self.spec.device.value
        if self.facts is None:
            return None
        return resolve_device_kind(self.spec, self.facts)

    @property
    def num_steps(self) -> int | None:
        """The run's optimizer steps; None where it has no length, or epochs of a split whose size is not known."""
        dataset = self.catalog.dataset(self.spec.dataset)
        return length_in_steps(self.spec, dataset.num_train_samples if dataset else None) or None

    @property
    def length_field(self) -> str:
        """The field in which the length was given."""
        return "num_epochs" if self.spec.num_steps is None and self.spec.num_epochs is not None else "num_steps"

    @property
    def devices(self) -> list[DeviceFacts]:
        """The host's devices of that kind; empty where the host or the kind is not known."""
        if self.facts is None or self.device_kind is None:
            return []
        return self.facts.devices_of(self.device_kind)


Rule = Callable[[Situation], Iterator[Finding]]
RULES: list[Rule] = []


def resolve_device_kind(spec: TrainSpec, facts: HostFacts) -> str:
    """What `device: auto` means on this host: its GPUs if there are any, else the CPU."""
    if spec.device is not DeviceKind.AUTO:
        return spec.device.value
    return "cuda" if facts.devices_of("cuda") else "cpu"


def check(spec: TrainSpec, facts: HostFacts | None, catalog: Catalog) -> list[Finding]:
    """All findings about `spec`: refusals first, then warnings, in the order of the rules."""
    situation = Situation(spec, facts, catalog)
    findings = [finding for each in RULES for finding in each(situation)]
    return sorted(findings, key=lambda finding: finding.severity is not Severity.REFUSE)


def refusals(findings: Iterable[Finding]) -> list[Finding]:
    """Only the findings that stop a job."""
    return [finding for finding in findings if finding.severity is Severity.REFUSE]


def rule(function: Rule) -> Rule:
    """Put a rule into the table."""
    RULES.append(function)
    return function


def refuse(field: str, message: str, **params: object) -> Finding:
    """A finding that stops the job."""
    return _finding(Severity.REFUSE, field, message, params)


def warn(field: str, message: str, **params: object) -> Finding:
    """A finding that is shown and stored."""
    return _finding(Severity.WARN, field, message, params)


def _finding(severity: Severity, field: str, message: str, params: dict[str, object]) -> Finding:
    return Finding(code=f"{severity.value}_{field}", field=field, severity=severity, message=message, params=params)
