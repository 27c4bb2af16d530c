"""What a study has found so far: each configuration beside the baseline, in time, memory and loss."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from django.db.models import Count, Q, QuerySet

from jobs.contract.errors import InvalidSpec
from jobs.contract.findings import Finding
from jobs.contract.plan import Configuration, StudyPlan, expand, interleaved
from jobs.contract.rules import refusals
from jobs.contract.states import OPEN_STATES, Outcome
from jobs.contract.stored import read_stored_plan, read_stored_spec
from jobs.equal_loss import LossComparison, capped_margin, compare_losses
from jobs.models import Attempt, Board, Job, Queue, Study, User, Workload
from jobs.selectors.hosts import abilities, mildest_findings, online_workers
from jobs.selectors.jobs import teams_of
from jobs.statistics import RatioInterval, Verdict, judge, ratio_interval

# What no row shows, and what would cost most to read.
_UNREAD = (
    "summary",
    "resolved_spec",
    "versions",
    "hardware",
    "findings",
    "artifacts",
    "error",
)

Repeat = tuple[Configuration, int]  # of which configuration, and which one
Runs = Mapping[int, Attempt]  # those that succeeded in one piece, by their seed


@dataclass(frozen=True)
class StudyRow:
    """One configuration. Ratios are to the baseline, paired by seed; None where too few pairs are there.

    Runs are paired on the same ground only, unless the configuration itself asks for another device.
    """

    configuration: Configuration
    jobs: list[Job]
    num_done: int
    step_time_ms: float | None  # medians over its repeats
    samples_per_s: float | None
    peak_bytes: int | None
    eval_loss: float | None
    time: RatioInterval | None
    time_verdict: Verdict
    memory: RatioInterval | None
    memory_verdict: Verdict
    loss: LossComparison | None
    is_same_work: bool  # as the baseline's, so that losses may be compared

    @property
    def is_baseline(self) -> bool:
        """Whether all others are held against it."""
        return self.configuration.place == 0

    @property
    def ranks(self) -> bool:
        """Whether its speed may be called an improvement: it does the same work as well."""
        return self.is_baseline or (self.loss is not None and self.loss.verdict.may_rank)

    @property
    def outcomes(self) -> dict[str, int]:
        """How many of its runs ended otherwise than well, by outcome."""
        states = [job.state for job in self.jobs if job.outcome and job.outcome != Outcome.SUCCEEDED]
        return {state: states.count(state) for state in dict.fromkeys(states)}


@dataclass(frozen=True)
class StudyView:
    """A study with its rows, the fastest of those that rank first; the rest follow in the plan's order."""

    study: Study
    plan: StudyPlan
    rows: list[StudyRow]
    num_runs: int
    num_done: int
    margin: float | None
    is_margin_capped: bool  # the work's own is wider than what counts beside this baseline
    num_environments: int  # more than one: runs on different ground, of which only those on the same are paired
    unread: list[Finding]  # what an earlier version stored and this one cannot read; the plan is without it

    @property
    def is_over(self) -> bool:
        """Whether every run has ended."""
        return self.num_done == self.num_runs

    @property
    def winner(self) -> StudyRow | None:
        """The fastest configuration that is shown to be faster at equal loss, None where none is."""
        return next((row for row in self.rows if row.ranks and row.time_verdict is Verdict.BETTER), None)


def visible_studies(user: User) -> QuerySet[Study]:
    """The studies of the user's teams, newest first, with their runs counted."""
    studies = Study.objects.select_related("owner", "team", "queue", "paused_by").annotate(
        num_runs=Count("jobs"), num_open=Count("jobs", filter=Q(jobs__state__in=OPEN_STATES))
    )
    studies = studies.order_by("-pk")  # Django leaves the model's own order out where it groups
    return studies if user.is_staff else studies.filter(team__in=teams_of(user))


def may_change_study(user: User, study: Study) -> bool:
    """Whether the person may pause, extend, share or cancel it: its owner, and staff."""
    return user.is_staff or study.owner_id == user.pk


def view_study(study: Study) -> StudyView:
    """Everything that its page shows; three queries."""
    found = Job.objects.filter(study=study).select_related("last_attempt").order_by("pk")
    jobs = list(found.defer(*(f"last_attempt__{name}" for name in _UNREAD)))
    by_place: dict[int, list[Job]] = defaultdict(list)
    for job in jobs:
        by_place[job.study_place or 0].append(job)
    runs = {place: counted_runs(group) for place, group in by_place.items()}
    baseline = runs.get(0, {})
    fixed = _margin(baseline)
    margin = None if fixed is None else capped_margin(fixed, _losses(baseline))
    plan, configurations, unread = _asked(study, by_place)
    rows = [
        _row(one, by_place[one.place], runs.get(one.place, {}), baseline, margin, until_sure=plan.until_sure)
        for one in configurations
    ]
    return StudyView(
        study=study,
        plan=plan,
        rows=sorted(rows, key=_rank),
        num_runs=len(jobs),
        num_done=sum(job.has_ended for job in jobs),
        margin=margin,
        is_margin_capped=margin != fixed,
        num_environments=len({run.environment_key for group in runs.values() for run in group.values()}),
        unread=unread,
    )


def configurations_of(study: Study) -> list[Configuration]:
    """Those that run: what the plan makes without what the rules refused.

    Raises `InvalidSpec` where this version cannot read the plan.
    """
    left_out = {entry["place"] for entry in study.left_out}
    return [one for one in expand(study.study_plan) if one.place not in left_out]


def _asked(study: Study, by_place: Mapping[int, Sequence[Job]]) -> tuple[StudyPlan, list[Configuration], list[Finding]]:
    """The plan and its configurations; where this version cannot read all of it, those that ran and what is unread."""
    try:
        return study.study_plan, configurations_of(study), []
    except InvalidSpec as error:
        stored = read_stored_plan(study.plan)
        return stored.plan, _that_ran(study.plan, by_place), stored.unread or error.findings


def _that_ran(plan: Mapping[str, Any], by_place: Mapping[int, Sequence[Job]]) -> list[Configuration]:
    """A study's configurations as their runs tell them; their changes name options that exist no more, too."""
    specs = {place: by_place[place][0].spec for place in sorted(by_place)}
    base = specs.get(0) or plan.get("base") or {}
    changes = {
        place: {name: value for name, value in spec.items() if name != "seed" and value != base.get(name)}
        for place, spec in specs.items()
    }
    return [Configuration(place, changes[place], read_stored_spec(spec).spec) for place, spec in specs.items()]


def board_of(view: StudyView) -> Board | None:
    """The board on which its baseline stands; None until a run of it has ended."""
    runs = [job.last_attempt for row in view.rows if row.is_baseline for job in row.jobs if job.has_ended]
    newest = next((run for run in reversed(runs) if run and run.workload_key), None)
    if newest is None:
        return None
    keys = {"workload_key": newest.workload_key, "environment_key": newest.environment_key}
    return Board.objects.filter(team=view.study.team_id, **keys).first()


def in_turns(configurations: Sequence[Configuration], num_repeats: int) -> list[Repeat]:
    """Every repeat of every configuration, in the order A B B A."""
    return [(configurations[index], repeat) for index, repeat in interleaved(len(configurations), num_repeats)]


def missing_runs(study: Study, configurations: Sequence[Configuration], num_repeats: int) -> list[Repeat]:
    """Those of so many repeats of these configurations that the study does not have yet, in turns."""
    there = {(job.study_place, job.spec["seed"]) for job in Job.objects.filter(study=study).only("study_place", "spec")}
    runs = in_turns(configurations, num_repeats)
    return [(one, repeat) for one, repeat in runs if (one.place, one.spec.seed + repeat) not in there]


@dataclass(frozen=True)
class Ground:
    """What the runs of a study were done on."""

    device_name: str
    versions: dict[str, str]


def environment_of(study: Study) -> Ground | None:
    """The ground of its newest run that ended well; None where none has."""
    runs = Attempt.objects.filter(job__study=study, outcome=Outcome.SUCCEEDED).order_by("-pk")
    newest = runs.only("device_name", "versions").first()
    return Ground(newest.device_name, newest.versions) if newest else None


def refused_by(queue: Queue, configurations: Iterable[Configuration]) -> list[tuple[Configuration, list[Finding]]]:
    """Those of the configurations that can run nowhere in the queue, and why."""
    hosts = [abilities(worker) for worker in online_workers().filter(queues=queue)]
    answers = [(one, refusals(mildest_findings(one.spec, hosts))) for one in configurations]
    return [(one, refused) for one, refused in answers if refused]


def counted_runs(jobs: list[Job]) -> dict[int, Attempt]:
    """The attempts whose figures count, by seed. One that was resumed never ranks on time."""
    succeeded = [job for job in jobs if job.outcome == Outcome.SUCCEEDED and job.last_attempt]
    attempts = {job.spec["seed"]: job.last_attempt for job in succeeded}
    return {seed: run for seed, run in attempts.items() if run and run.resumed_at_step is None}


def _diverged(jobs: Iterable[Job]) -> Runs:
    return {job.spec["seed"]: job.last_attempt for job in jobs if job.outcome == Outcome.DIVERGED and job.last_attempt}


def _num_diverged(diverged: Runs, baseline: Runs) -> int:
    """How many of the runs have a partner in the baseline that came through."""
    return sum(seed in baseline for seed in diverged)


def _margin(baseline: Runs) -> float | None:
    keys = {run.workload_key for run in baseline.values()}
    workload = Workload.objects.filter(key__in=keys).first() if len(keys) == 1 else None
    return workload.loss_margin if workload else None


def on_common_ground(runs: Runs, baseline: Runs, changes: Mapping[str, Any]) -> Runs:
    """The runs that may be held against the baseline's of their seeds: where another host or other versions ran one of
    the two, what differs may be theirs. A configuration that changes the device asks for just that.
    """
    if "device" in changes:
        return runs
    return {
        seed: run
        for seed, run in runs.items()
        if seed in baseline and run.environment_key == baseline[seed].environment_key
    }


def of_same_memory(runs: Runs, baseline: Runs) -> Runs:
    """The runs whose peak is of the same memory as the baseline's of their seeds: a GPU's, or that of the processes."""
    on_gpu = {seed: run.peak_allocated_bytes is not None for seed, run in baseline.items()}
    return {seed: run for seed, run in runs.items() if on_gpu.get(seed) == (run.peak_allocated_bytes is not None)}


def _row(
    configuration: Configuration,
    jobs: list[Job],
    runs: Runs,
    baseline: Runs,
    margin: float | None,
    *,
    until_sure: bool,
) -> StudyRow:
    paired = on_common_ground(runs, baseline, configuration.changes) if configuration.place else {}
    time = ratio_interval(_ratios(paired, baseline, lambda run: run.steady_step_time_ms), until_sure=until_sure)
    alike = of_same_memory(paired, baseline)
    memory = ratio_interval(_ratios(alike, baseline, peak_bytes), until_sure=until_sure)
    is_same_work = len({run.workload_key for run in [*runs.values(), *baseline.values()]}) < 2
    differences = _differences(paired, baseline) if is_same_work else []
    num_diverged = _num_diverged(on_common_ground(_diverged(jobs), baseline, configuration.changes), baseline)
    return StudyRow(
        configuration=configuration,
        jobs=jobs,
        num_done=sum(job.has_ended for job in jobs),
        step_time_ms=_median(runs, lambda run: run.steady_step_time_ms),
        samples_per_s=_median(runs, lambda run: run.samples_per_s),
        peak_bytes=_whole(_median(runs, peak_bytes)),
        eval_loss=_median(runs, lambda run: run.final_eval_loss),
        time=time,
        time_verdict=judge(time, lower_is_better=True),
        memory=memory,
        memory_verdict=judge(memory, lower_is_better=True),
        loss=compare_losses(differences, margin, num_diverged) if margin and configuration.place else None,
        is_same_work=is_same_work,
    )


def peak_bytes(run: Attempt) -> float | None:
    """The GPU's peak where there was one, else the process's."""
    return run.peak_allocated_bytes if run.peak_allocated_bytes is not None else run.peak_rss_bytes


def _ratios(runs: Runs, baseline: Runs, figure: Callable[[Attempt], float | None]) -> list[float]:
    pairs = [(figure(run), figure(baseline[seed])) for seed, run in runs.items() if seed in baseline]
    return [mine / theirs for mine, theirs in pairs if mine and theirs]


def _differences(runs: Runs, baseline: Runs) -> list[float]:
    pairs = [(run.final_eval_loss, baseline[seed].final_eval_loss) for seed, run in runs.items() if seed in baseline]
    found = [mine - theirs for mine, theirs in pairs if mine is not None and theirs is not None]
    return [difference for difference in found if math.isfinite(difference)]


def _losses(runs: Runs) -> list[float]:
    return [run.final_eval_loss for run in runs.values() if run.final_eval_loss is not None]


def _median(runs: Runs, figure: Callable[[Attempt], float | None]) -> float | None:
    values = [value for run in runs.values() if (value := figure(run)) is not None and math.isfinite(value)]
    return median(values) if values else None


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _rank(row: StudyRow) -> tuple[bool, float, int]:
    """The fastest that ranks first; what does not rank, or has no time yet, behind."""
    is_behind = not row.ranks or row.step_time_ms is None
    return is_behind, (row.step_time_ms or math.inf) if not is_behind else 0.0, row.configuration.place
