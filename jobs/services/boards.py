"""Boards are kept when a run ends, in the transaction of its end; see `jobs.models.board`."""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from statistics import median
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet, Value
from django.db.models.functions import Greatest, Least
from django.utils.translation import gettext

from jobs.board_runs import MOST_RUNS, BoardRun, kept_runs, run_of
from jobs.contract.keys import configuration, configuration_key, workload
from jobs.contract.states import Outcome
from jobs.contract.stored import read_stored_spec
from jobs.loss_course import Course, course_of, target_of, thinned
from jobs.models import Attempt, AuditAction, Board, BoardEntry, Search, User, Workload
from jobs.selectors.curves import read_own_curve
from jobs.services.audit import note
from jobs.services.errors import NotPossible

# How a run may end and still say something of its configuration; the others were stopped by something else.
TELLING = (Outcome.SUCCEEDED, Outcome.DIVERGED, Outcome.OUT_OF_MEMORY)
_COURSE_SERIES = "train_loss"
_REBUILT_AT_ONCE = 200
_MOST_BESIDE = 100  # entries that are looked at for their seeds


def read_course(attempt: Attempt) -> Course:
    """How the attempt's training loss fell. Read before the transaction that ends it, for that must be short."""
    return course_of(read_own_curve(attempt, _COURSE_SERIES))


def note_run(attempt_id: int, course: Course) -> None:
    """Put an attempt that has ended on its board, where its end says something of its configuration.

    A run in two parts is left out, for it has no time of its own. Call it in the transaction of the end.
    """
    attempt = Attempt.objects.select_related("job__owner").get(pk=attempt_id)
    ended_at = attempt.ended_at
    if ended_at is None or not _belongs_on_a_board(attempt):
        return
    entry = _locked_entry(_board_of(attempt, ended_at), attempt, ended_at)
    outcomes = entry.outcomes
    entry.outcomes = outcomes | {attempt.outcome: outcomes.get(attempt.outcome, 0) + 1}
    entry.last_ended_at = max(entry.last_ended_at, ended_at)
    if attempt.outcome == Outcome.SUCCEEDED:
        _add_run(entry, attempt, course)
    entry.save()
    Board.objects.filter(pk=entry.board_id).update(
        num_runs=F("num_runs") + 1,
        first_ended_at=Least("first_ended_at", Value(ended_at)),
        last_ended_at=Greatest("last_ended_at", Value(ended_at)),
    )
    if attempt.outcome == Outcome.SUCCEEDED:
        Board.objects.filter(pk=entry.board_id, baseline=None).update(baseline=entry)


def _belongs_on_a_board(attempt: Attempt) -> bool:
    is_whole = attempt.resumed_at_step is None and bool(attempt.resolved_spec)
    is_told = is_whole and bool(attempt.workload_key) and attempt.outcome in TELLING
    return is_told and not _is_screening(attempt)


def _is_screening(attempt: Attempt) -> bool:
    """Whether it is a short run of a search, which only says what to run at full length; the search's page shows it."""
    study = attempt.job.study_id
    return study is not None and Search.objects.filter(screening=study).exists()


def _board_of(attempt: Attempt, ended_at: datetime) -> Board:
    keys = {
        "team_id": attempt.job.team_id,
        "workload_key": attempt.workload_key,
        "environment_key": attempt.environment_key,
    }
    if board := Board.objects.filter(**keys).first():
        return board
    work = workload(read_stored_spec(attempt.resolved_spec or {}).spec, attempt.dataset_revision)
    made = Board(
        **keys,
        workload=work,
        model=work["model"],
        dataset=work["dataset"],
        device_name=attempt.device_name,
        versions=attempt.versions,
        first_ended_at=ended_at,
        last_ended_at=ended_at,
    )
    Board.objects.bulk_create([made], ignore_conflicts=True)  # another run of it may end at the same moment
    return Board.objects.get(**keys)


def _locked_entry(board: Board, attempt: Attempt, ended_at: datetime) -> BoardEntry:
    spec: dict[str, Any] = attempt.resolved_spec or {}
    key = configuration_key(spec)
    # Not its key: who changes the board's baseline holds the board and points to an entry, and would wait in a circle.
    entries = BoardEntry.objects.select_for_update(no_key=True).filter(board=board, configuration_key=key)
    if entry := entries.first():
        return entry
    made = BoardEntry(board=board, configuration_key=key, configuration=configuration(spec), last_ended_at=ended_at)
    BoardEntry.objects.bulk_create([made], ignore_conflicts=True)
    return entries.get()


def _add_run(entry: BoardEntry, attempt: Attempt, course: Course) -> None:
    run = run_of(
        attempt.measured,
        course,
        _target(attempt.workload_key, course),
        job=attempt.job_id,
        seed=(attempt.resolved_spec or {}).get("seed", 0),
        owner=attempt.job.owner.get_username(),
        ended_at=attempt.ended_at.isoformat() if attempt.ended_at else "",
    )
    runs = sorted([*entry.runs, run.as_json()], key=lambda one: one["ended_at"])
    entry.runs = kept_runs(runs, _seeds_beside(entry)) if len(runs) > MOST_RUNS else runs
    kept = {str(stored["job"]) for stored in entry.runs}
    courses = entry.courses | ({str(run.job): thinned(course)} if course else {})
    entry.courses = {job: levels for job, levels in courses.items() if job in kept}
    entry.step_time_ms = median_step_time_ms(entry)


def _seeds_beside(entry: BoardEntry) -> Counter[int]:
    """The seeds by which the entry is paired: the baseline's; of the baseline, how many of the fastest have each."""
    others = BoardEntry.objects.filter(board=entry.board_id).exclude(pk=entry.pk)
    baseline_id = Board.objects.values_list("baseline", flat=True).get(pk=entry.board_id)
    if baseline_id != entry.pk:
        others = others.filter(pk=baseline_id)
    fastest = others.order_by(F("step_time_ms").asc(nulls_last=True))[:_MOST_BESIDE]
    return Counter(seed for runs in fastest.values_list("runs", flat=True) for seed in {run["seed"] for run in runs})


def median_step_time_ms(entry: BoardEntry) -> float | None:
    """Over the runs that the entry holds."""
    known = [run.steady_step_time_ms for run in map(BoardRun.from_json, entry.runs)]
    values = [value for value in known if value is not None]
    return median(values) if values else None


def _target(workload_key: str, course: Course) -> float | None:
    """The work's target; the first run that comes here with a falling loss fixes it."""
    row = Workload.objects.filter(pk=workload_key).first()
    if row is None or row.target_loss is not None:
        return row.target_loss if row else None
    target = target_of(course)
    if Workload.objects.filter(pk=workload_key, target_loss=None).update(target_loss=target):
        return target
    row.refresh_from_db()  # another run that ended at the same moment fixed it
    return row.target_loss


def rebuild_boards() -> Iterator[int]:
    """Make every board anew from the attempts, the oldest first; yields how many are done, a few hundred at a time.

    Baselines that people chose, and reproductions, are kept where their configuration is met again. A run that ends
    meanwhile puts itself on its board, and is not put there once more.
    """
    with transaction.atomic():
        Board.objects.update(num_runs=0)
        BoardEntry.objects.update(runs=[], courses={}, outcomes={}, step_time_ms=None)
        still_open = list(Attempt.objects.filter(outcome=None).values_list("pk", flat=True))
        newest = Attempt.objects.order_by("pk").values_list("pk", flat=True).last() or 0
    ended = _ended_attempts().filter(pk__lte=newest).exclude(pk__in=still_open)
    done, last = 0, 0
    while batch := list(ended.filter(pk__gt=last).order_by("pk")[:_REBUILT_AT_ONCE]):
        for attempt in batch:
            course = read_course(attempt) if attempt.outcome == Outcome.SUCCEEDED else []
            with transaction.atomic():
                note_run(attempt.pk, course)
        done, last = done + len(batch), batch[-1].pk
        yield done
    BoardEntry.objects.filter(outcomes={}).delete()
    Board.objects.filter(num_runs=0).delete()


def _ended_attempts() -> QuerySet[Attempt]:
    found = Attempt.objects.filter(outcome__in=TELLING, resumed_at_step=None).exclude(workload_key="")
    return found.only("pk", "outcome", "resumed_from", "resumed_at_step")


def change_baseline(board: Board, entry: BoardEntry, by: User) -> None:
    """Hold the board against another of its configurations; where it is held against this one, nothing changes.

    Raises `NotPossible` where no run of it ended well: nothing can be held against that.
    """
    if not entry.runs:
        raise NotPossible(gettext("No run of this configuration ended well: nothing can be held against it."))
    with transaction.atomic():
        locked = Board.objects.select_for_update(of=("self",)).select_related("baseline").get(pk=board.pk)
        before = locked.baseline
        if before == entry:
            return
        Board.objects.filter(pk=board.pk).update(baseline=entry)
        note(
            by,
            AuditAction.BASELINE,
            board=locked,
            before=_differing(before.configuration, entry.configuration) if before else None,
            after=_differing(entry.configuration, before.configuration if before else configuration({})),
        )


def _differing(configuration: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in configuration.items() if name not in other or other[name] != value}
