"""What a study would take, told before it is submitted: from what was measured, else from the engine's estimates."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.contract.findings import Finding
from jobs.contract.plan import Configuration, Extension, StudyPlan, expand, extend
from jobs.contract.spec import DeviceKind, TrainSpec
from jobs.contract.states import Outcome
from jobs.models import Job, Queue, SpecEstimate, Study, Team
from jobs.models.estimate import estimate_key
from jobs.selectors.durations import Durations, measured_durations
from jobs.selectors.hosts import online_workers
from jobs.selectors.studies import missing_runs, refused_by
from jobs.selectors.turns import num_wanted

_RUNS_READ = 400

# Fields that a run's memory does not depend on: who differs in them only needs as much.
_OF_NO_WEIGHT = {"seed", "num_steps", "num_epochs", "time_limit_s", "learning_rate", "weight_decay", "lr_schedule"}
_WEIGHED = [name for name in TrainSpec.model_fields if name not in _OF_NO_WEIGHT]

Refused = list[tuple[Configuration, list[Finding]]]


@dataclass(frozen=True)
class StudyEstimate:
    """Sums are over the runs that would be queued and of which it is known; None where it is known of none."""

    num_configurations: int  # that are run; the baseline is one of them
    num_runs: int
    most_runs: int  # where repeats are added until it is sure
    device_s: float | None
    num_untimed: int  # configurations like which none was measured
    peak_bytes: int | None  # of the one that needs most, on one device
    num_unweighed: int
    left_out: Refused

    @property
    def num_repeats(self) -> int | None:
        """Runs of each configuration; None where some get more than others."""
        each, left = divmod(self.num_runs, self.num_configurations) if self.num_configurations else (0, 0)
        return None if left else each

    @property
    def device_minutes(self) -> float | None:
        """How long devices would be held, all together."""
        return None if self.device_s is None else self.device_s / 60


def estimate_study(plan: StudyPlan, queue: Queue, team: Team) -> StudyEstimate:
    """What a new study would queue. Raises `InvalidSpec` where the plan cannot be."""
    configurations = expand(plan)
    left_out = refused_by(queue, configurations)
    able = _without(configurations, {one.place for one, _findings in left_out})
    counts = {one.place: plan.num_repeats for one in able}
    return _estimate(able, counts, len(able) * plan.most_repeats, queue, team, left_out)


def estimate_extension(study: Study, extension: Extension) -> StudyEstimate:
    """What would come on top of a study. Raises `InvalidSpec` where the extension cannot be."""
    plan = extend(study.study_plan, extension)
    configurations = expand(plan)
    left_out = refused_by(study.queue, configurations[len(expand(study.study_plan)) :])
    out = {entry["place"] for entry in study.left_out} | {one.place for one, _findings in left_out}
    able = _without(configurations, out)
    counts = Counter(one.place for one, _repeat in missing_runs(study, able, plan.num_repeats))
    most_runs = len(missing_runs(study, able, plan.most_repeats))
    return _estimate([one for one in able if counts[one.place]], counts, most_runs, study.queue, study.team, left_out)


def _without(configurations: Iterable[Configuration], out: set[int]) -> list[Configuration]:
    return [one for one in configurations if one.place not in out]


def _estimate(
    configurations: Sequence[Configuration],
    counts: Mapping[int, int],
    most_runs: int,
    queue: Queue,
    team: Team,
    left_out: Refused,
) -> StudyEstimate:
    """Of so many runs of each configuration by its place."""
    specs = [one.spec for one in configurations]
    times = _device_s(specs, queue)
    sums = [each * counts[one.place] for one, each in zip(configurations, times, strict=True) if each is not None]
    peaks = _peaks(specs, queue, team)
    return StudyEstimate(
        num_configurations=len(specs),
        num_runs=sum(counts.values()),
        most_runs=most_runs,
        device_s=sum(sums) if sums else None,
        num_untimed=len(specs) - len(sums),
        peak_bytes=max(peaks, default=None),
        num_unweighed=len(specs) - len(peaks),
        left_out=left_out,
    )


def _device_s(specs: Iterable[TrainSpec], queue: Queue) -> list[float | None]:
    """Seconds of all devices together that one run of each spec takes; None where nothing like it was measured."""
    durations, auto = measured_durations(), _auto_kind(queue)
    return [_seconds(spec, durations, auto if spec.device is DeviceKind.AUTO else spec.device.value) for spec in specs]


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
