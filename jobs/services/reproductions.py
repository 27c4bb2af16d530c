"""A configuration measured again: its repeats are queued once more, seed by seed, and held against what they were."""

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.utils.translation import gettext

from jobs.board_runs import BoardRun
from jobs.contract.states import Outcome
from jobs.equal_loss import LossVerdict, capped_margin, compare_losses
from jobs.models import BoardEntry, Job, Reproduction, User, Workload
from jobs.models.board import UNDECIDED, Agreement
from jobs.ranking import Repeats, ratio_to, seed_differences
from jobs.reproduction import is_verified, newest_by_seed, seeds_wanted
from jobs.selectors.asked_work import asks_for_configuration, open_runs
from jobs.selectors.jobs import visible_jobs
from jobs.services.clone import spec_to_repeat
from jobs.services.errors import NotPossible
from jobs.services.submit import submit_job
from jobs.statistics import RatioInterval

_SAYS_NOTHING = (Outcome.CANCELLED, Outcome.LOST)  # it was ended from outside


def reproduce(entry: BoardEntry, by: User) -> Reproduction:
    """Queue the newest run of each seed again, of as many seeds as its noise asks for.

    Raises `NotPossible` where there are fewer, or where it is being reproduced already, and `SpecRefused` as a
    submission does.
    """
    with transaction.atomic():
        _lock(entry)
        runs = [BoardRun.from_json(stored) for stored in entry.runs]
        wanted = seeds_wanted(runs)
        originals = newest_by_seed(runs)[-wanted:]
        if len(originals) < wanted:
            raise NotPossible(
                gettext("%(n)s of the %(wanted)s seeds that it takes to verify it are there: add repeats first.")
                % {"n": len(originals), "wanted": wanted}
            )
        if entry.reproductions.filter(agreement__in=UNDECIDED, jobs__outcome=None).exists():
            raise NotPossible(gettext("This configuration is being reproduced already."))
        sources = _sources(by, [run.job for run in originals])
        reproduction = Reproduction(entry=entry, by=by, originals=[run.as_json() for run in originals])
        reproduction.save()
        reproduction.jobs.set([_again(sources[run.job], by, run.seed) for run in originals])
    return reproduction


def add_repeats(entry: BoardEntry, by: User) -> list[Job]:
    """Queue runs with seeds that the configuration lacks, those of the baseline first, until it could be verified.

    Seeds that wait or run are not queued once more. Raises `NotPossible` where it has them, `SpecRefused` as a
    submission does.
    """
    with transaction.atomic():
        _lock(entry)
        known = {stored["seed"] for stored in entry.runs}
        wanted = seeds_wanted([BoardRun.from_json(stored) for stored in entry.runs])
        if not known or len(known) >= wanted:
            raise NotPossible(gettext("This configuration has its repeats already."))
        job_id = entry.runs[-1]["job"]
        source = _sources(by, [job_id])[job_id]
        seeds = missing_seeds(known | _open_seeds(entry, source), _seeds_of(entry.board.baseline), wanted)
        if not seeds:
            raise NotPossible(gettext("The repeats of this configuration are queued already."))
        return [_again(source, by, seed) for seed in seeds]


def _lock(entry: BoardEntry) -> None:
    """Two clicks come one after the other, and the second sees what the first one queued."""
    BoardEntry.objects.select_for_update(no_key=True).get(pk=entry.pk)


def _open_seeds(entry: BoardEntry, source: Job) -> set[int]:
    """The seeds of jobs that wait or run in the source's queue and ask for this configuration of the board's work."""
    jobs = [job for job in open_runs(entry.board) if job.queue_id == source.queue_id]
    return {job.spec["seed"] for job in jobs if asks_for_configuration(job.stored_spec.spec, entry.configuration)}


def missing_seeds(known: set[int], of_baseline: Sequence[int], wanted: int) -> list[int]:
    """Seeds to measure next: those that can be paired with the baseline, then new ones."""
    seeds = [seed for seed in of_baseline if seed not in known][: max(0, wanted - len(known))]
    following = max([*known, *of_baseline], default=-1) + 1
    while len(known) + len(seeds) < wanted:
        seeds.append(following)
        following += 1
    return seeds


def _seeds_of(entry: BoardEntry | None) -> list[int]:
    return list(dict.fromkeys(stored["seed"] for stored in entry.runs)) if entry else []


def _sources(by: User, job_ids: Sequence[int]) -> dict[int, Job]:
    jobs: dict[int, Job] = visible_jobs(by).in_bulk(job_ids)
    if gone := [job_id for job_id in job_ids if job_id not in jobs]:
        raise NotPossible(gettext("Job %(job)s exists no more.") % {"job": gone[0]})
    return jobs


def _again(source: Job, by: User, seed: int) -> Job:
    spec = spec_to_repeat(source).model_copy(update={"seed": seed})
    return submit_job(owner=by, team=source.team, queue=source.queue, spec=spec, name=source.name)


def judge_reproductions(job_id: int) -> None:
    """Say of each reproduction that the job was the last run of whether it agrees.

    Call it in the transaction of the job's end, whatever ended it.
    """
    open_ones = Reproduction.objects.filter(jobs=job_id, agreement__in=UNDECIDED).values_list("pk", flat=True)
    for pk in list(open_ones):
        # Locked, so that of two runs that end at the same moment one sees the other's end.
        reproduction = Reproduction.objects.select_for_update().get(pk=pk)
        jobs = list(reproduction.jobs.select_related("last_attempt"))
        if all(job.has_ended for job in jobs):
            reproduction.agreement, reproduction.finding = _judged(reproduction, jobs)
            reproduction.save(update_fields=["agreement", "finding"])


def _judged(reproduction: Reproduction, jobs: Sequence[Job]) -> tuple[Agreement, dict[str, Any]]:
    board = reproduction.entry.board
    attempts = [job.last_attempt for job in jobs if job.last_attempt]
    if any(one.environment_key and one.environment_key != board.environment_key for one in attempts):
        return Agreement.MOVED, {}
    originals = [BoardRun.from_json(stored) for stored in reproduction.originals]
    telling = [job for job in jobs if job.outcome not in _SAYS_NOTHING and not _is_in_parts(job)]
    ended_well = [job for job in telling if job.outcome == Outcome.SUCCEEDED]
    times = ratio_to(_figures(ended_well, "steady_step_time_ms"), _original(originals, "steady_step_time_ms"))
    loss = _loss_verdict(board.workload_key, ended_well, originals)
    finding: dict[str, Any] = {"loss": loss} if loss else {}
    if times:
        finding |= {"n": times.n, "ratio": times.ratio, "low": times.low, "high": times.high}
    agreement = _agreement(times, loss) if len(ended_well) == len(telling) else Agreement.DIFFERED
    if agreement is Agreement.UNSURE and len(telling) < len(jobs):
        agreement = Agreement.STOPPED
    return agreement, finding


def _agreement(times: RatioInterval | None, loss: LossVerdict | None) -> Agreement:
    if loss is LossVerdict.WORSE:
        return Agreement.DIFFERED
    if times and is_verified(times):
        return Agreement.AGREED if loss is None or loss.may_rank else Agreement.UNSURE
    return Agreement.DIFFERED if times and not times.contains_one else Agreement.UNSURE


def _is_in_parts(job: Job) -> bool:
    """Whether it went on after an interruption: it has no time of its own."""
    return job.last_attempt is not None and job.last_attempt.resumed_at_step is not None


def _figures(jobs: Sequence[Job], name: str) -> Repeats:
    values = [(job.spec["seed"], getattr(job, name)) for job in jobs]
    return [(seed, value) for seed, value in values if value is not None]


def _original(originals: Sequence[BoardRun], name: str) -> Repeats:
    values = [(run.seed, getattr(run, name)) for run in originals]
    return [(seed, value) for seed, value in values if value is not None]


def _loss_verdict(workload_key: str, jobs: Sequence[Job], originals: Sequence[BoardRun]) -> LossVerdict | None:
    """How the losses stand to what they were; None where there is none that could be compared."""
    fixed = Workload.objects.filter(pk=workload_key).values_list("loss_margin", flat=True).first()
    if not fixed or fixed < 0:
        return None
    again, before = _figures(jobs, "final_eval_loss"), _original(originals, "final_eval_loss")
    margin = capped_margin(fixed, [loss for _seed, loss in before])
    compared = compare_losses(seed_differences(again, before), margin)
    return compared.verdict if compared else None
