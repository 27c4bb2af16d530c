"""The claims beside what was measured here: the best evidence of each on each device, and what could show it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from jobs.claim_verdict import ClaimVerdict, Measured, judge_promise, verdict_of
from jobs.contract.claims import CLAIMS, Claim, Preset, Promise, Quantity
from jobs.contract.findings import Finding
from jobs.contract.plan import Configuration, StudyPlan, expand
from jobs.contract.rules import check, refusals
from jobs.contract.spec import TrainSpec
from jobs.models import Queue, Study, User
from jobs.selectors.hosts import Abilities, abilities, online_workers
from jobs.selectors.studies import StudyRow, StudyView, view_study, visible_studies
from jobs.statistics import RatioInterval

_CANDIDATE = 1  # its place in a preset's plan
_MOST_STUDIES = 3  # of one preset that are looked at, the newest


class Standing(StrEnum):
    """What the board says of a claim as a whole."""

    HOLDS = "holds"
    FAILS = "fails"
    MIXED = "mixed"  # it holds on one device and fails on another
    UNDECIDED = "undecided"
    MEASURING = "measuring"
    NEEDS_GPU = "needs_gpu"
    NOT_MEASURED = "not_measured"


@dataclass(frozen=True)
class Evidence:
    """One study of a claim on one device: each promise as it was measured, None where too few pairs were."""

    study: Study
    device_name: str
    versions: dict[str, str]
    environment_key: str
    promises: tuple[tuple[Promise, Measured | None], ...]
    verdict: ClaimVerdict
    unread: list[Finding]  # of its study, see there

    @property
    def weight(self) -> tuple[int, int]:
        """More repeats on the same ground are better evidence, and newer ones of those."""
        return sum(one.n for _promise, one in self.promises if one), self.study.pk


@dataclass(frozen=True)
class PresetState:
    """A study that can be made: the queue where it would run now, None where no worker online could; the open one."""

    preset: Preset
    queue: Queue | None
    running: Study | None


@dataclass(frozen=True)
class ClaimRow:
    """A claim with the best evidence for each device, and its studies."""

    claim: Claim
    evidence: list[Evidence]
    presets: list[PresetState]

    @property
    def standing(self) -> Standing:
        """What is known of it here, in one word."""
        verdicts = {one.verdict for one in self.evidence} - {ClaimVerdict.UNDECIDED}
        if len(verdicts) > 1:
            return Standing.MIXED
        if verdicts:
            return Standing(verdicts.pop().value)
        if any(state.running for state in self.presets):
            return Standing.MEASURING
        if self.evidence:
            return Standing.UNDECIDED
        needs_gpu = all(state.preset.num_gpus and not state.queue for state in self.presets)
        return Standing.NEEDS_GPU if needs_gpu else Standing.NOT_MEASURED


def claim_board(user: User) -> list[ClaimRow]:
    """Every claim; a few queries for each study of it."""
    hosts = _hosts()
    studies: dict[str, list[Study]] = defaultdict(list)
    names = [preset_name(claim, preset) for claim in CLAIMS for preset in claim.presets]
    for study in visible_studies(user).filter(preset__in=names):
        studies[study.preset].append(study)
    return [_row(claim, studies, hosts) for claim in CLAIMS]


def preset_name(claim: Claim, preset: Preset) -> str:
    """What a study of it is marked with."""
    return f"{claim.key}/{preset.device}"


def preset_asked(configurations: Sequence[Configuration]) -> str:
    """What a study of these configurations is marked with: a claim's preset where it asks for just that."""
    asked = [one.spec for one in configurations]
    presets = ((preset_name(claim, preset), preset) for claim in CLAIMS for preset in claim.presets)
    return next((name for name, preset in presets if _specs(preset.plan.model_dump_json()) == asked), "")


def queue_for(preset: Preset) -> Queue | None:
    """A queue with a worker online that could run both sides of it, the default one first."""
    return _queue_for(preset, _hosts())


Hosts = Sequence[tuple[Abilities, list[Queue]]]


def _hosts() -> Hosts:
    return [(abilities(worker), list(worker.queues.all())) for worker in online_workers().prefetch_related("queues")]


def _queue_for(preset: Preset, hosts: Hosts) -> Queue | None:
    specs = _specs(preset.plan.model_dump_json())
    found = [
        queue
        for (facts, catalog), queues in hosts
        if not any(refusals(check(spec, facts, catalog)) for spec in specs)
        for queue in queues
    ]
    return min(found, key=lambda queue: (queue.name != "default", queue.name), default=None)


@cache
def _specs(plan: str) -> list[TrainSpec]:
    return [configuration.spec for configuration in expand(StudyPlan.model_validate_json(plan))]


def _row(claim: Claim, studies: dict[str, list[Study]], hosts: Hosts) -> ClaimRow:
    found: list[Evidence] = []
    states = []
    for preset in claim.presets:
        views = [view_study(study) for study in studies[preset_name(claim, preset)][:_MOST_STUDIES]]
        running = next((view.study for view in views if not view.is_over), None)
        states.append(PresetState(preset, _queue_for(preset, hosts), running))
        found += [evidence for view in views if (evidence := _evidence(claim, view))]
    return ClaimRow(claim, _best_of_each_device(found), states)


def _best_of_each_device(found: Sequence[Evidence]) -> list[Evidence]:
    """Of each device only what was measured on the versions of its newest study: others say nothing of today's."""
    newest = {one.device_name: one for one in sorted(found, key=lambda one: one.study.pk)}
    grounds = {one.environment_key for one in newest.values()}
    best: dict[str, Evidence] = {}
    for one in found:
        if one.environment_key in grounds:
            best[one.device_name] = max(best.get(one.device_name, one), one, key=lambda each: each.weight)
    return list(best.values())


def _evidence(claim: Claim, view: StudyView) -> Evidence | None:
    """What a study says; None while nothing of its candidate has ended well."""
    row = next((row for row in view.rows if row.configuration.place == _CANDIDATE), None)
    runs = [job.last_attempt for job in row.jobs if job.outcome and job.last_attempt] if row else []
    if row is None or row.step_time_ms is None or not runs:
        return None
    ground = {name: getattr(runs[-1], name) for name in ("device_name", "versions", "environment_key")}
    promises = tuple((promise, judge_promise(promise, _interval(row, promise))) for promise in claim.promises)
    verdict = verdict_of([measured for _promise, measured in promises])
    return Evidence(study=view.study, promises=promises, verdict=verdict, unread=view.unread, **ground)


def _interval(row: StudyRow, promise: Promise) -> RatioInterval | None:
    return row.time if promise.quantity is Quantity.TIME else row.memory
