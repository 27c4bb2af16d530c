"""What a study would take, told before it is submitted: from what was measured, else from the engine's estimates."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.contract.findings import Finding
from jobs.contract.plan import Configuration, StudyPlan, expand
from jobs.contract.spec import DeviceKind, TrainSpec
from jobs.contract.states import Outcome
from jobs.models import Job, Queue, SpecEstimate, Team
from jobs.models.estimate import estimate_key
from jobs.selectors.durations import Durations, measured_durations
from jobs.selectors.hosts import online_workers
from jobs.selectors.studies import refused_by
from jobs.selectors.turns import num_wanted

_RUNS_READ = 400

# Fields that a run's memory does not depend on: who differs in them only needs as much.
_OF_NO_WEIGHT = {"seed", "num_steps", "num_epochs", "time_limit_s", "learning_rate", "weight_decay", "lr_schedule"}
_WEIGHED = [name for name in TrainSpec.model_fields if name not in _OF_NO_WEIGHT]

Refused = list[tuple[Configuration, list[Finding]]]


@dataclass(frozen=True)
class StudyEstimate:
    """Sums are over the configurations that would run and of which it is known; None where it is known of none."""

    num_configurations: int  # the baseline is one of them
    num_repeats: int
    most_repeats: int  # where repeats are added until it is sure
    device_s: float | None
    num_untimed: int  # configurations like which none was measured
    peak_bytes: int | None  # of the one that needs most, on one device
    num_unweighed: int
    left_out: Refused

    @property
    def num_runs(self) -> int:
        """Jobs that the study would queue."""
        return self.num_configurations * self.num_repeats

    @property
    def most_runs(self) -> int:
        """Jobs that it may come to."""
        return self.num_configurations * self.most_repeats

    @property
    def device_minutes(self) -> float | None:
        """How long devices would be held, all together."""
        return None if self.device_s is None else self.device_s / 60


def estimate_study(plan: StudyPlan, queue: Queue, team: Team) -> StudyEstimate:
    """Raises `InvalidSpec` where the plan cannot be."""
    configurations = expand(plan)
    left_out = refused_by(queue, configurations)
    out = {configuration.place for configuration, _findings in left_out}
    specs = [one.spec for one in configurations if one.place not in out]
    times = _device_s(specs, queue)
    peaks = _peaks(specs, queue, team)
    return StudyEstimate(
        num_configurations=len(specs),
        num_repeats=plan.num_repeats,
        most_repeats=plan.most_repeats,
        device_s=plan.num_repeats * sum(times) if times else None,
        num_untimed=len(specs) - len(times),
        peak_bytes=max(peaks, default=None),
        num_unweighed=len(specs) - len(peaks),
        left_out=left_out,
    )


def _device_s(specs: Iterable[TrainSpec], queue: Queue) -> list[float]:
    """Seconds of all devices together that one run of each spec takes, where one like it was measured."""
    durations, auto = measured_durations(), _auto_kind(queue)
    found = [_seconds(spec, durations, auto if spec.device is DeviceKind.AUTO else spec.device.value) for spec in specs]
    return [seconds for seconds in found if seconds is not None]


def _seconds(spec: TrainSpec, durations: Durations, kind: str) -> float | None:
    expected_s = durations.expected_s(spec.model_dump(mode="json"), kind)
    return None if expected_s is None else expected_s * num_wanted(spec, kind) * spec.num_nodes


def _auto_kind(queue: Queue) -> str:
    """What `device: auto` most likely becomes on the queue's workers."""
    facts = (worker.host_facts for worker in online_workers().filter(queues=queue))
    return "cuda" if any(each.devices_of("cuda") for each in facts) else "cpu"


def _peaks(specs: Sequence[TrainSpec], queue: Queue, team: Team) -> list[int]:
    """The peak memory of each spec: the most that a run of it took, else what the engine said that it would take."""
    measured = _measured_peaks({spec.model for spec in specs}, team)
    keys = {estimate_key(spec, queue): place for place, spec in enumerate(specs)}
    told = {keys[each.key]: each.told for each in SpecEstimate.objects.filter(key__in=keys, answer__isnull=False)}
    estimated = {place: answer.peak_bytes for place, answer in told.items() if answer}
    found = [measured.get(_weighed(spec.model_dump(mode="json")), estimated.get(at)) for at, spec in enumerate(specs)]
    return [peak for peak in found if peak is not None]


def _measured_peaks(models: Iterable[str], team: Team) -> dict[tuple[str, ...], int]:
    runs = Job.objects.filter(team=team, model__in=set(models), outcome=Outcome.SUCCEEDED).order_by("-pk")
    peaks: dict[tuple[str, ...], int] = {}
    for job in runs.only("spec", "peak_allocated_bytes", "peak_rss_bytes")[:_RUNS_READ]:
        peak = job.peak_allocated_bytes if job.peak_allocated_bytes is not None else job.peak_rss_bytes
        if peak is not None:
            peaks[_weighed(job.spec)] = max(peak, peaks.get(_weighed(job.spec), 0))
    return peaks


def _weighed(spec: dict[str, Any]) -> tuple[str, ...]:
    """What two runs must have in common to need as much memory."""
    defaults = TrainSpec().model_dump(mode="json")
    return tuple(str(spec.get(name, defaults[name])) for name in _WEIGHED)
