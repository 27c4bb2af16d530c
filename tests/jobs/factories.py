"""A small cast for the tests: people, teams, queues, workers, and jobs in every state."""

import itertools
import uuid
from collections.abc import Sequence

from django.utils import timezone

from jobs.contract.catalog import BUILT_IN
from jobs.contract.events import Points, Started
from jobs.contract.facts import DeviceFacts, HostFacts
from jobs.contract.findings import Finding
from jobs.contract.metrics import Summary
from jobs.contract.spec import DeviceKind, TrainSpec
from jobs.contract.states import Outcome
from jobs.models import Attempt, Job, Queue, Team, User, Worker
from jobs.services.claim import claim_next
from jobs.services.finish import finish_attempt
from jobs.services.record import record_finding, record_points, record_started
from jobs.services.workers import register_worker

GIB = 2**30
VERSIONS = {"engine": "0.1.0", "torch": "2.13.0", "python": "3.11.7"}
HARDWARE = {
    "devices": [{"kind": "cpu", "index": 0, "name": "Fast CPU", "memory_bytes": 8 * GIB, "has_native_bf16": False}],
    "num_cpu_cores": 6,
}
_numbers = itertools.count(1)


def make_user(name: str | None = None, *, team: Team | None = None, is_staff: bool = False) -> User:
    user = User.objects.create_user(name or f"user-{next(_numbers)}", password="open sesame", is_staff=is_staff)
    if team:
        team.members.add(user)
    return user


def make_team(name: str | None = None) -> Team:
    return Team.objects.create(name=name or f"team-{next(_numbers)}")


def make_queue(name: str = "default") -> Queue:
    return Queue.objects.get_or_create(name=name)[0]


def make_spec(**values: object) -> TrainSpec:
    return TrainSpec.model_validate({"num_steps": 100} | values)


def host_facts(hostname: str = "box", *, num_gpus: int = 0, has_compiler: bool = True) -> HostFacts:
    cpu = DeviceFacts(kind="cpu", name="Fast CPU", memory_bytes=16 * GIB, has_native_bf16=True)
    gpus = [
        DeviceFacts(
            kind="cuda",
            index=index,
            name="Fast GPU",
            memory_bytes=80 * GIB,
            compute_capability=(9, 0),
            has_native_bf16=True,
        )
        for index in range(num_gpus)
    ]
    return HostFacts(
        hostname=hostname,
        devices=[cpu, *gpus],
        num_cpu_cores=8,
        has_compiler=has_compiler,
        torch_version="2.13.0",
        python_version="3.11.7",
    )


def make_worker(hostname: str = "box", *, queues: Sequence[str] = ("default",), num_gpus: int = 0) -> Worker:
    facts = host_facts(hostname, num_gpus=num_gpus)
    return register_worker(uuid.uuid5(uuid.NAMESPACE_DNS, hostname), 1234, list(queues), facts, BUILT_IN)


def make_job(
    owner: User | None = None,
    *,
    team: Team | None = None,
    queue: Queue | None = None,
    spec: TrainSpec | None = None,
    **values: object,
) -> Job:
    """A queued job; its row is written without the rules and without a wake-up."""
    team = team or (owner and owner.teams.first()) or make_team()
    values = {"queued_at": timezone.now()} | values
    return Job.objects.create(
        owner=owner or make_user(team=team),
        team=team,
        queue=queue or make_queue(),
        spec=(spec or make_spec()).model_dump(mode="json"),
        **{"order_key": values["queued_at"].timestamp()} | values,
    )


def start(job: Job, worker: Worker | None = None, **started: object) -> Attempt:
    """The job's next attempt, running: claimed by the worker whatever else waits."""
    worker = worker or make_worker()
    Job.objects.filter(pk=job.pk).update(priority=1000)
    attempt = claim_next(worker.pk)
    assert attempt, f"{worker} could not take job {job.pk}; is its device busy?"
    assert attempt.job_id == job.pk
    Job.objects.filter(pk=job.pk).update(priority=job.priority)
    record_started(attempt, started_event(job, **started))
    attempt.refresh_from_db()
    job.refresh_from_db()
    return attempt


def started_event(job: Job, **values: object) -> Started:
    device = DeviceKind.CPU if job.spec["device"] == "auto" else job.train_spec.device
    spec = job.train_spec.model_copy(update={"device": device})
    return Started.model_validate(
        {
            "pid": 4321,
            "spec": spec.model_dump(mode="json"),
            "device_name": "Fast CPU",
            "dataset_revision": "r1",
            "num_train_samples": 1437,
            "versions": VERSIONS,
            "hardware": HARDWARE,
        }
        | values
    )


def points(steps: Sequence[int], **series: Sequence[float]) -> Points:
    return Points(
        steps=list(steps),
        wall_s=[0.01 * step for step in steps],
        series={name: [float(value) for value in values] for name, values in series.items()},
    )


def record(attempt: Attempt, *events: Points) -> None:
    num_flushes = Attempt.objects.values_list("num_flushes", flat=True).get(pk=attempt.pk)
    for sequence, event in enumerate(events, start=num_flushes):
        record_points(attempt, sequence, [event])


def warn(attempt: Attempt, finding: Finding) -> None:
    record_finding(attempt, finding)


def make_summary(**values: object) -> Summary:
    measured = {
        "num_steps": 100,
        "steady_step_time_ms": 10.0,
        "samples_per_s": 3200.0,
        "final_train_loss": 2.5,
        "final_eval_loss": 2.6,
        "peak_rss_bytes": 512 * 2**20,
    }
    return Summary.model_validate(measured | values)


def make_ended_job(
    owner: User | None = None,
    *,
    outcome: Outcome = Outcome.SUCCEEDED,
    losses: Sequence[float] = (3.0, 2.0, 1.0),
    summary: dict[str, object] | None = None,
    started: dict[str, object] | None = None,
    worker: Worker | None = None,
    **values: object,
) -> Job:
    """A job that ran and ended, with a curve of `train_loss`."""
    job = make_job(owner, **values)
    attempt = start(job, worker, **(started or {}))
    if losses:
        record(attempt, points(range(1, len(losses) + 1), train_loss=losses))
    finish_attempt(attempt, outcome, make_summary(**(summary or {})))
    return Job.objects.select_related("last_attempt", "owner", "team", "queue").get(pk=job.pk)
