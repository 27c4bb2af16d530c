"""The leaderboard: which configuration does the same work fastest on the same ground."""

import json
import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from statistics import median
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext

from jobs.contract.keys import workload
from jobs.contract.options import Role
from jobs.contract.spec import TrainSpec, fields_with_role
from jobs.contract.states import Outcome
from jobs.models import Attempt, Job, User
from jobs.selectors.jobs import visible_jobs

# The newest runs that boards are made of; older ones are history, not a ranking.
_NEWEST_RUNS = 5000

# What a board does not look at, and would cost more to decode than all the rest.
_UNREAD = ("spec", "last_attempt__error", "last_attempt__findings", "last_attempt__summary")


@dataclass(frozen=True)
class Column:
    """A configuration field by its name and label."""

    name: str
    label: str


@dataclass(frozen=True)
class BoardRow:
    """All runs of one configuration; medians over `n` runs."""

    rank: int
    configuration: dict[str, Any]  # every configuration field
    n: int
    steady_step_time_ms: float
    ratio: float  # step time relative to the fastest configuration, 1 or more
    samples_per_s: float | None
    peak_allocated_bytes: int | None
    peak_rss_bytes: int | None
    final_eval_loss: float | None
    job_ids: list[int]
    owners: list[str]
    last_ended_at: datetime


@dataclass(frozen=True)
class Board:
    """One workload in one environment; only runs that share both are ranked against each other."""

    workload_key: str
    environment_key: str
    workload: dict[str, Any]
    title: str
    device_name: str
    versions: dict[str, str]
    columns: list[Column]  # the configuration fields in which the rows differ
    rows: list[BoardRow]


def boards(user: User) -> list[Board]:
    """A board for each workload and environment among the jobs that `user` may see, the last used one first.

    Thin on purpose: rows are ranked by their median step time alone. Intervals, verdicts and the gate that only lets
    runs of equal loss be ranked come with studies, which repeat each configuration over paired seeds.
    """
    groups: dict[tuple[str, str], list[Job]] = defaultdict(list)
    for job in _ranked_jobs(user):
        attempt = _attempt(job)
        groups[attempt.workload_key, attempt.environment_key].append(job)
    return [_board(jobs) for jobs in groups.values()]


def _ranked_jobs(user: User) -> QuerySet[Job]:
    """Succeeded jobs with a step time, newest first; one query. A run in two parts is never ranked on its time."""
    jobs = visible_jobs(user).filter(outcome=Outcome.SUCCEEDED, last_attempt__steady_step_time_ms__gt=0)
    # PostgreSQL holds NaN for greater than every number, infinity included; SQLite stores it as null.
    jobs = jobs.filter(last_attempt__resumed_at_step=None, last_attempt__steady_step_time_ms__lt=math.inf)
    jobs = jobs.exclude(last_attempt__workload_key="").select_related(None).select_related("owner", "last_attempt")
    return jobs.defer(*_UNREAD)[:_NEWEST_RUNS]


def _board(jobs: list[Job]) -> Board:
    newest = _attempt(jobs[0])
    work = workload(TrainSpec.model_validate(newest.resolved_spec), newest.dataset_revision)
    groups: dict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        groups[json.dumps(_configuration(job))].append(job)
    ranked = sorted(groups.values(), key=lambda group: _step_time_ms(group))
    fastest_ms = _step_time_ms(ranked[0])
    rows = [_row(rank, group, fastest_ms) for rank, group in enumerate(ranked, start=1)]
    return Board(
        workload_key=newest.workload_key,
        environment_key=newest.environment_key,
        workload=work,
        title=_title(work),
        device_name=newest.device_name,
        versions=newest.versions,
        columns=_columns(rows),
        rows=rows,
    )


def _row(rank: int, jobs: list[Job], fastest_ms: float) -> BoardRow:
    attempts = [_attempt(job) for job in jobs]
    step_time_ms = _step_time_ms(jobs)
    return BoardRow(
        rank=rank,
        configuration=_configuration(jobs[0]),
        n=len(jobs),
        steady_step_time_ms=step_time_ms,
        ratio=step_time_ms / fastest_ms,
        samples_per_s=_median(attempt.samples_per_s for attempt in attempts),
        peak_allocated_bytes=_whole(_median(attempt.peak_allocated_bytes for attempt in attempts)),
        peak_rss_bytes=_whole(_median(attempt.peak_rss_bytes for attempt in attempts)),
        final_eval_loss=_median(attempt.final_eval_loss for attempt in attempts),
        job_ids=[job.pk for job in jobs],
        owners=list(dict.fromkeys(job.owner.get_username() for job in jobs)),
        last_ended_at=max(attempt.ended_at for attempt in attempts if attempt.ended_at),
    )


def _attempt(job: Job) -> Attempt:
    assert job.last_attempt is not None, "a job that succeeded has an attempt"  # noqa: S101 our own mistake
    return job.last_attempt


def _configuration(job: Job) -> dict[str, Any]:
    """Its configuration fields; a spec stored before a field was added counts with that field's default."""
    resolved = _attempt(job).resolved_spec or {}
    return {name: resolved.get(name, default) for name, default in _default_configuration().items()}


@cache
def _default_configuration() -> dict[str, Any]:
    defaults = TrainSpec().model_dump(mode="json")
    return {name: defaults[name] for name in fields_with_role(Role.CONFIGURATION)}


def _columns(rows: list[BoardRow]) -> list[Column]:
    return [
        Column(name, gettext(TrainSpec.model_fields[name].title or name))
        for name in fields_with_role(Role.CONFIGURATION)
        if len({json.dumps(row.configuration[name]) for row in rows}) > 1
    ]


def _title(work: dict[str, Any]) -> str:
    return gettext(
        "%(model)s on %(dataset)s, %(num_steps)s steps of %(global_batch_size)s samples, "
        "%(optimizer)s at learning rate %(learning_rate)s"
    ) % (work | {"learning_rate": f"{work['learning_rate']:g}"})


def _step_time_ms(jobs: list[Job]) -> float:
    return median(attempt.steady_step_time_ms or 0.0 for attempt in map(_attempt, jobs))


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
