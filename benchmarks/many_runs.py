"""Random runs by the million, from a fixed seed: rows go straight into the tables, whose indexes are made afterwards.

What is stored is what a team's year leaves: specs and summaries in full, several people in ten teams, tags on some,
several workloads on several kinds of device. Curves are left out, for no list reads them.
"""

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, product
from operator import itemgetter
from typing import Any

from django.core.management.color import no_style
from django.db import connection, models, transaction
from django.utils import timezone

from benchmarks.many_boards import Ended, Ground, ManyBoards
from jobs.contract.keys import environment_key, workload_key
from jobs.contract.spec import TrainSpec
from jobs.models import Attempt, Job, JobTag, Queue, Team, TeamTag, User
from tests.jobs.factories import make_queue, make_spec, make_team, make_user

NUM_TEAMS = 10
PEOPLE_PER_TEAM = 3
NEWEST_DAYS = 365
AT_ONCE = 10_000  # runs of one transaction

MODELS = {"mlp": 2.0, "convnet": 12.0, "gpt-tiny": 40.0, "gpt2": 250.0, "resnet50": 120.0}  # ms of a step, about
DEVICES = {"auto": "cuda", "cpu": "cpu", "cuda": "cuda"}  # what was asked for, and what it came to
DEVICE_NAMES = {"cpu": "Fast CPU", "cuda": "Fast GPU"}
SPEEDS = {"cpu": 8.0, "cuda": 0.4}
PRECISIONS = {"fp32": 1.0, "bf16-mixed": 0.7}
OUTCOMES = ["succeeded"] * 17 + ["failed", "out_of_memory", "cancelled"]
TAGS = ["baseline", "night run", "sweep", "release", *(f"try {number}" for number in range(16))]
NUM_NEEDLES = 20  # runs of a name that no other has
MIB = 2**20

Values = dict[str, Any]


@dataclass(frozen=True)
class People:
    """Who looks (a member of every team), and who has made the runs, by team."""

    member: User
    teams: list[Team]
    owners: dict[int, list[User]]


def make_people() -> People:
    """Ten teams of three, and one person who is in all of them."""
    teams = [make_team(f"team-{number}") for number in range(NUM_TEAMS)]
    member = make_user("member", team=teams[0])
    for team in teams[1:]:
        team.members.add(member)
    return People(member, teams, {team.pk: _members(team) for team in teams})


def _members(team: Team) -> list[User]:
    """Without passwords, which take a while to be made."""
    members = [User.objects.create(username=f"{team.name}-{number}") for number in range(PEOPLE_PER_TEAM)]
    team.members.add(*members)
    return members


def fill(num_runs: int, people: People) -> None:
    """So many runs of the last year into an empty database, the oldest first."""
    rows, queue = random.Random(7), make_queue()
    moments = iter(sorted(rows.random() for _ in range(num_runs)))
    runs = _Runs(rows, people, queue, num_runs)
    TeamTag.objects.bulk_create([TeamTag(team=team, name=name) for team in people.teams for name in TAGS])
    with _unguarded(), _without_indexes(Job, Attempt, JobTag):
        while piece := list(islice(moments, AT_ONCE)):
            runs.add(piece)
    runs.boards.store()
    _tidy()


# ---------------------------------------------------------------- the rows


class _Table:
    """A model's table: `line` takes what differs from `usual` and gives the values as the database stores them."""

    def __init__(self, usual: models.Model) -> None:
        fields = [field for field in usual._meta.local_concrete_fields if not field.generated]
        self.fields = {field.attname: field for field in fields}
        self._usual = {name: self.stored(name, getattr(usual, name)) for name in self.fields}
        self._in_order = itemgetter(*self.fields)
        names = ", ".join(connection.ops.quote_name(field.column) for field in fields)
        signs = ", ".join(["%s"] * len(fields))
        self._insert = f"INSERT INTO {usual._meta.db_table} ({names}) VALUES ({signs})"  # noqa: S608 our own names

    def stored(self, name: str, value: Any) -> Any:
        """A value of one column as the database takes it."""
        return self.fields[name].get_db_prep_save(value, connection)

    def line(self, values: Values) -> tuple[Any, ...]:
        """One row; `values` are stored ones by column."""
        row: tuple[Any, ...] = self._in_order(self._usual | values)
        return row

    def insert(self, lines: list[tuple[Any, ...]]) -> None:
        """All of them in one statement."""
        with connection.cursor() as cursor:
            cursor.executemany(self._insert, lines)


@dataclass(frozen=True)
class _Asked:
    """One spec, and what is the same for all its runs."""

    job: Values
    attempt: Values
    step_time_ms: float
    seed: int
    ground: Ground


class _Runs:
    """Makes runs and adds them; their numbers count up from 1."""

    def __init__(self, rows: random.Random, people: People, queue: Queue, num_runs: int) -> None:
        now = timezone.now()
        self._rows, self._people, self._num_runs = rows, people, num_runs
        self._began, self._next = now - timedelta(days=NEWEST_DAYS), 1
        times = {"queued_at": now, "created_at": now}
        self._jobs = _Table(Job(queue=queue, spec={}, fence=1, **times))
        lease = {"heartbeat_at": now, "lease_expires_at": now, "claimed_at": now}
        self._attempts = _Table(Attempt(number=1, fence=1, num_points=100, **lease))
        self._tags = _Table(JobTag())
        self.boards = ManyBoards()
        self._asked = [self._as_stored(spec) for spec in _specs()]

    def _as_stored(self, spec: TrainSpec) -> _Asked:
        device = DEVICES[spec.device]
        device_name = DEVICE_NAMES[device]
        asked, resolved = spec.model_dump(mode="json"), spec.model_dump(mode="json") | {"device": device}
        versions = {"torch": "2.13.0", "engine": "0.1.0", "python": "3.11.7"}
        attempt = {
            "resolved_spec": self._attempts.stored("resolved_spec", resolved),
            "versions": self._attempts.stored("versions", versions),
            "device_name": device_name,
            "dataset_revision": "r1",
            "workload_key": workload_key(spec, "r1"),
            "environment_key": environment_key(device_name, versions),
        }
        step_time_ms = MODELS[spec.model] * SPEEDS[device] * PRECISIONS[spec.precision]
        ground = Ground.of(TrainSpec.model_validate(resolved), resolved, attempt, versions)
        return _Asked({"spec": self._jobs.stored("spec", asked)}, attempt, step_time_ms, spec.seed, ground)

    def add(self, moments: list[float]) -> None:
        """One run at each moment (0 is a year ago, 1 is now)."""
        jobs, attempts, tags = [], [], []
        for number, moment in enumerate(moments, start=self._next):
            job, attempt = self._run(number, self._began + timedelta(days=NEWEST_DAYS) * moment)
            jobs.append(self._jobs.line(job))
            attempts.append(self._attempts.line(attempt))
            tags += [self._tags.line({"id": 3 * number + at, "job_id": number, "name": n}) for at, n in self._labels()]
        self._next += len(moments)
        with transaction.atomic():
            self._jobs.insert(jobs)
            self._attempts.insert(attempts)
            self._tags.insert(tags)

    def _labels(self) -> Iterator[tuple[int, str]]:
        """Tags of one run: a tenth of the runs has some."""
        return enumerate(self._rows.sample(TAGS, 2) if self._rows.random() < 0.1 else [])

    def _run(self, number: int, at: datetime) -> tuple[Values, Values]:
        rows, asked = self._rows, self._rows.choice(self._asked)
        outcome, team = rows.choice(OUTCOMES), rows.choice(self._people.teams)
        moment = self._jobs.stored("queued_at", at)
        is_measured = outcome in ("succeeded", "cancelled")
        figures = _figures(rows, asked.step_time_ms * rows.lognormvariate(0, 0.3)) if is_measured else {}
        owner = rows.choice(self._people.owners[team.pk])
        self.boards.add(team.pk, asked.ground, outcome, Ended(number, owner.username, asked.seed, at, figures))
        same = {"id": number, "outcome": outcome, "ended_at": moment, **figures}
        job = {
            "team_id": team.pk,
            "owner_id": owner.pk,
            "name": "needle" if rows.random() < NUM_NEEDLES / self._num_runs else f"run {rows.randrange(1000)}",
            "state": outcome,
            "order_key": at.timestamp(),
            "last_attempt_id": number,
            **dict.fromkeys(("created_at", "queued_at"), moment),
        }
        attempt = {"job_id": number, "summary": self._attempts.stored("summary", figures)}
        times = dict.fromkeys(("claimed_at", "running_at", "heartbeat_at", "lease_expires_at"), moment)
        return same | asked.job | job, same | asked.attempt | attempt | times


def _specs() -> list[TrainSpec]:
    """Five models at five learning rates are 25 workloads; 36 configurations of each, with ten seeds."""
    rates, seeds = (0.1, 0.03, 0.01, 0.003, 0.001), range(10)
    return [
        make_spec(model=model, dataset="digits", learning_rate=rate, seed=seed, **configuration)
        for model, rate, seed, configuration in product(MODELS, rates, seeds, _configurations())
    ]


def _configurations() -> list[dict[str, Any]]:
    return [
        {"device": device, "precision": precision, "compile_mode": mode, "num_workers": num_workers}
        | ({"data_loading": "dataloader"} if num_workers else {})
        for device, precision, mode, num_workers in product(DEVICES, PRECISIONS, ("off", "default"), (0, 2, 4))
    ]


def _figures(rows: random.Random, step_time_ms: float) -> Values:
    return {
        "steady_step_time_ms": step_time_ms,
        "samples_per_s": 32_000 / step_time_ms,
        "first_step_s": rows.random() * 20,
        "train_s": rows.random() * 3000,
        "final_train_loss": rows.lognormvariate(0, 0.5),
        "final_eval_loss": rows.lognormvariate(0, 0.5),
        "eval_accuracy": rows.random(),
        "peak_rss_bytes": rows.randrange(256 * MIB, 8192 * MIB),
        "peak_allocated_bytes": rows.randrange(256 * MIB, 65536 * MIB) if rows.random() < 0.5 else None,
    }


# ------------------------------------------------------------ the database


@contextmanager
def _unguarded() -> Iterator[None]:
    """Rows go in without a journal and without looking up what they point to: the database is ours and new."""
    if connection.vendor == "sqlite":
        before = "journal_mode=OFF; synchronous=OFF; foreign_keys=OFF; cache_size=-1000000; threads=2"
        begin, end = [f"PRAGMA {each}" for each in before.split("; ")], ["PRAGMA journal_mode=WAL"]
    else:
        begin, end = ["SET session_replication_role = replica"], []
        end = connection.ops.sequence_reset_sql(no_style(), [Job, Attempt, JobTag])
    _execute(begin)
    yield
    _execute(end)
    connection.close()  # the next one is as any other


@contextmanager
def _without_indexes(*of: type[models.Model]) -> Iterator[None]:
    """Each index is made once, from all rows, which takes a tenth of the time."""
    definitions = _indexes([model._meta.db_table for model in of])
    _execute([f"DROP INDEX {connection.ops.quote_name(name)}" for name in definitions])
    yield
    _execute(definitions.values())


def _indexes(tables: list[str]) -> Mapping[str, str]:
    """How each index was made that is no part of a constraint, by its name."""
    if connection.vendor == "sqlite":
        asked = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name IN ({})"
    else:
        asked = (
            "SELECT indexname, indexdef FROM pg_indexes"
            " WHERE indexname NOT IN (SELECT conname FROM pg_constraint) AND tablename IN ({})"
        )
    with connection.cursor() as cursor:
        cursor.execute(asked.format(", ".join(["%s"] * len(tables))), tables)
        return dict(cursor.fetchall())


def _execute(statements: Any) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def _tidy() -> None:
    """What a server does by itself in time. SQLite gathers no statistics unless it is told to, and is not told to."""
    if connection.vendor != "sqlite":
        _execute(["VACUUM ANALYZE"])
