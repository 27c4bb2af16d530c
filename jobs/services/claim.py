"""A worker takes the next job that it can run: job, attempt and device leases in one transaction, or nothing.

The transaction locks the host's row, then the rows of its queues by id, then its devices: pause, drain and limits are
therefore checked against rows that nobody changes meanwhile. The job itself is taken by a guarded update.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from pydantic import ValidationError

from jobs.contract.rules import check, refusals, resolve_device_kind
from jobs.contract.states import State
from jobs.logs import fields_of
from jobs.models import Attempt, Device, Job, Queue, Worker
from jobs.selectors.turns import best_host, claimable_jobs, devices_needed, that_fit, within_limits
from jobs.timings import timings

logger = logging.getLogger(__name__)

_MOST_READ_AT_ONCE = 200


def claim_next(worker_id: int) -> Attempt | None:
    """The attempt that this worker now owns, or None where nothing that waits can run here now."""
    with transaction.atomic():
        worker = Worker.objects.select_for_update(no_key=True).get(pk=worker_id)
        if worker.is_draining:
            return None
        line = within_limits(claimable_jobs(), _lock_queues(worker))
        room = _Room(worker, _lock_devices(worker))
        while room.free and (job := _first(line, room)):
            devices = devices_needed(job.train_spec, room.facts, room.free)
            if devices is None:
                room.settle(job)
            elif attempt := _take(job, worker, devices):
                return attempt
    return None


def _lock_queues(worker: Worker) -> list[Queue]:
    queues = Queue.objects.select_for_update(no_key=True, of=("self",)).filter(workers=worker)
    return list(queues.order_by("pk"))


def _lock_devices(worker: Worker) -> list[Device]:
    devices = Device.objects.select_for_update(no_key=True).filter(worker=worker).order_by("kind", "index")
    return [device for device in devices if device.is_in_service]


@dataclass
class _Room:
    """What a host has for jobs while it claims."""

    worker: Worker
    in_service: list[Device]
    # Kinds of devices of which the first job that waited too long has been found: those that it holds back here, and
    # those that it does not, because another host is nearer to what it needs.
    held: set[str] = field(default_factory=set)
    left: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.facts = self.worker.host_facts
        self.catalog = self.worker.host_catalog

    @property
    def free(self) -> list[Device]:
        return [device for device in self.in_service if device.attempt_id is None and device.kind not in self.held]

    def that_matter(self) -> Q:
        """Jobs that fit, and jobs that have waited so long for more than is free that they may hold it back."""
        free = _count_by_kind(self.free)
        all_of_them = _count_by_kind(self.in_service)
        contested = {
            kind: all_of_them[kind] for kind in free if kind not in self.left and free[kind] < all_of_them[kind]
        }
        if not contested:
            return that_fit(self.facts, free)
        long_ago = Now() - timedelta(seconds=timings().reserve_after_s)
        return that_fit(self.facts, free) | (that_fit(self.facts, contested) & Q(queued_at__lte=long_ago))

    def accepts(self, job: Job) -> bool:
        """Whether the rules let the job run here."""
        try:
            return not refusals(check(job.train_spec, self.facts, self.catalog))
        except ValidationError:
            logger.warning("job %s is left waiting: its spec is not valid in this version", job.pk)
            return False

    def settle(self, job: Job) -> None:
        """Decide whether a job that has waited too long holds back what it needs here: only its best host does."""
        kind = resolve_device_kind(job.train_spec, self.facts)
        (self.held if best_host(job) == self.worker else self.left).add(kind)


def _count_by_kind(devices: list[Device]) -> dict[str, int]:
    kinds = [device.kind for device in devices]
    return {kind: kinds.count(kind) for kind in kinds}


def _first(line: QuerySet[Job], room: _Room) -> Job | None:
    """The next job that fits, or that has waited too long to be passed, and that the rules let run here."""
    return next((job for job in _read(line.filter(room.that_matter())) if room.accepts(job)), None)


def _read(jobs: QuerySet[Job]) -> Iterator[Job]:
    """The jobs in pages that grow: a limit lets the database stop early, and almost always the first job is taken."""
    begin, size = 0, 2
    while page := list(jobs[begin : begin + size]):
        yield from page
        begin, size = begin + size, min(4 * size, _MOST_READ_AT_ONCE)


def _take(job: Job, worker: Worker, devices: list[Device]) -> Attempt | None:
    """Make the job this worker's, or None where it was cancelled or moved since it was read."""
    fence = job.fence + 1
    unchanged = Job.objects.filter(
        pk=job.pk, state=State.QUEUED, fence=job.fence, queue=job.queue_id, cancel_requested_at=None
    )
    if unchanged.update(state=State.STARTING, fence=fence) != 1:
        return None
    attempt = Attempt.objects.create(
        job=job,
        number=job.attempts.count() + 1,
        fence=fence,
        worker=worker,
        claimed_at=Now(),
        heartbeat_at=Now(),
        lease_expires_at=Now() + timedelta(seconds=timings().lease_s),
    )
    leased = Device.objects.filter(pk__in=[device.pk for device in devices], attempt=None).update(attempt=attempt)
    if leased != len(devices):
        raise RuntimeError("a device was leased twice although its row is locked")
    Job.objects.filter(pk=job.pk).update(last_attempt=attempt)
    names = ", ".join(f"{device.kind}:{device.index}" for device in devices)
    logger.info("claimed by %s on %s", worker, names, extra=fields_of(attempt))
    return Attempt.objects.select_related("job").get(pk=attempt.pk)
