"""Seed after seed: jobs and faults, then quiet until all has ended, then the count."""

import logging
import random
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.core.management import call_command

from jobs.contract.spec import TrainSpec
from jobs.models import Job, Queue, Team, User, Worker
from jobs.services.submit import submit_job
from tests.chaos import ledger
from tests.chaos.faults import Faults
from tests.chaos.installation import HOSTS, Installation, wait_until
from tests.system.postgres import PostgresServer

START_TIMEOUT_S = 120
SETTLE_TIMEOUT_S = 150  # after the last fault
MAX_ATTEMPTS = 100  # so that no number of faults makes giving a job up the right thing to do

COLUMNS = ("seed", "jobs", "faults", "ended once", "doubled", "lost", "leaked devices", "stale writes refused")


@dataclass(frozen=True)
class Count:
    """What became of one seed's jobs."""

    seed: int
    jobs: int
    faults: int
    ended_once: int
    doubled: int
    lost: int
    leaked_devices: int
    stale_writes_refused: int

    @property
    def is_well(self) -> bool:
        """Whether every job ended once and every device is free."""
        return self.ended_once == self.jobs and not (self.doubled or self.lost or self.leaked_devices)


def run_seeds(seeds: Iterable[int], server: PostgresServer | None, *, num_jobs: int, fault_s: float) -> int:
    """Run all seeds on one installation; prints a line for each and one for all. The exit code."""
    logging.disable(logging.WARNING)
    call_command("migrate", verbosity=0)
    ledger.open_ledger()
    installation = Installation(settings.VAR, Path(settings.REDIS_URL.removeprefix("unix://")))
    installation.start()
    try:
        if not wait_until(lambda: Worker.objects.count() == len(HOSTS), START_TIMEOUT_S):
            raise SystemExit("the workers did not register")
        cast = _Cast()
        say(" | ".join(COLUMNS))
        counts = []
        for seed in seeds:
            counts.append(run_seed(seed, installation, server, cast, num_jobs, fault_s))
            say(line_of(counts[-1]))
    finally:
        installation.stop()
    return conclude(counts)


class _Cast:
    """Who submits, and where."""

    def __init__(self) -> None:
        self.user = User.objects.create_user("chaos", is_staff=True)
        self.team = Team.objects.create(name="Chaos")
        self.queue = Queue.objects.get(name="default")
        self.queue.max_attempts = MAX_ATTEMPTS
        self.queue.save()


def run_seed(
    seed: int, installation: Installation, server: PostgresServer | None, cast: _Cast, num_jobs: int, fault_s: float
) -> Count:
    """Submit jobs while faults happen, let all of it come to rest, and count."""
    dice = random.Random(seed)
    faults = Faults(installation, server, dice, cast.user)
    jobs = [submit(dice, cast) for _number in range(num_jobs)]
    until = time.monotonic() + fault_s
    while time.monotonic() < until:
        time.sleep(dice.uniform(0.1, 0.6))
        faults.inject()
    faults.undo()
    wait_until(lambda: is_at_rest(jobs, installation), SETTLE_TIMEOUT_S)
    return count(seed, jobs, sum(faults.counts.values()))


def submit(dice: random.Random, cast: _Cast) -> Job:
    """A job of a second or two on one GPU, two of them, the CPU or both hosts', with or without checkpoints."""
    devices = dice.choice(
        [
            {"device": "cuda"},
            {"device": "cpu"},
            {"device": "cuda", "num_devices": 2, "parallelism": "ddp"},
            {"device": "cpu", "num_nodes": 2, "parallelism": "ddp"},
        ]
    )
    checkpoints = {"checkpoint_every_steps": 20} if dice.random() < 0.5 else {}
    spec = TrainSpec.model_validate(
        {"model": "mlp", "dataset": "digits", "num_steps": dice.randint(20, 250)} | devices | checkpoints
    )
    return submit_job(owner=cast.user, team=cast.team, queue=cast.queue, spec=spec)


def is_at_rest(jobs: list[Job], installation: Installation) -> bool:
    """Whether all have ended, all devices are free and no process is left."""
    still_open = Job.objects.filter(pk__in=[job.pk for job in jobs], outcome=None).exists()
    return not (still_open or ledger.num_leaked_devices() or installation.supervisors or installation.engines)


def count(seed: int, submitted: list[Job], num_faults: int) -> Count:
    """The seed's line of the table."""
    jobs = list(Job.objects.select_related("last_attempt").filter(pk__in=[job.pk for job in submitted]))
    ends, changes = ledger.entries("ended"), ledger.entries("changed after")
    doubled = [job for job in jobs if ledger.is_doubled(job, ends, changes)]
    lost = [job for job in jobs if ledger.is_lost(job, ends)]
    for job in {*doubled, *lost}:
        say(f"  job {job.pk}: {job.state}, {ends[job.pk]} ends, {changes[job.pk]} changes after its end")
    return Count(
        seed=seed,
        jobs=len(jobs),
        faults=num_faults,
        ended_once=sum(ends[job.pk] == 1 for job in jobs),
        doubled=len(doubled),
        lost=len(lost),
        leaked_devices=ledger.num_leaked_devices(),
        stale_writes_refused=ledger.num_refused(jobs),
    )


def conclude(counts: list[Count]) -> int:
    """Sum up in the last line; the exit code."""
    total = {name: sum(getattr(each, name) for each in counts) for name in Count.__dataclass_fields__}
    is_well = all(each.is_well for each in counts)
    say(
        f"{len(counts)} seeds: {total['jobs']} jobs, {total['faults']} faults, {total['ended_once']} ended once, "
        f"{total['doubled']} doubled, {total['lost']} lost, {total['leaked_devices']} leaked devices, "
        f"{total['stale_writes_refused']} stale writes refused. {'All is well.' if is_well else 'NOT well.'}"
    )
    return 0 if is_well else 1


def line_of(count: Count) -> str:
    """Its line of the table."""
    cells = [getattr(count, name) for name in Count.__dataclass_fields__]
    return " | ".join(str(cell).rjust(len(column)) for cell, column in zip(cells, COLUMNS, strict=True))


def say(line: str) -> None:
    """One line of the table, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
