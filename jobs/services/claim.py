"""A worker takes the next job that it can run: job, attempt and device leases in one transaction, or nothing.

The transaction locks the host's row, then the rows of its queues by id, then its devices: pause, drain and limits are
therefore checked against rows that nobody changes meanwhile. While a job of several nodes waits anywhere, the rows of
the other hosts of these queues are locked with the own one, by id, and their devices too. The job itself is taken by a
guarded update.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypedDict

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from jobs.contract.errors import InvalidSpec
from jobs.contract.rules import check, refusals, resolve_device_kind
from jobs.contract.states import State
from jobs.logs import fields_of
from jobs.models import Attempt, AttemptNode, Device, Job, Queue, Worker
from jobs.selectors.hosts import likeness, online_workers
from jobs.selectors.study_devices import is_for_others, of_its_type
from jobs.selectors.turns import (
    best_hosts,
    claimable_jobs,
    devices_needed,
    held_before,
    that_fit,
    within_limits,
)
from jobs.services.study_devices import keep_type
from jobs.timings import timings

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

logger = logging.getLogger(__name__)

_MOST_READ_AT_ONCE = 200
_MOST_PASSED = 20  # jobs of several nodes that one claim tries in vain


class _Clock(TypedDict):
    now: datetime


Share = tuple[Worker, list[Device]]  # what a job gets on one of its hosts


def claim_next(worker_id: int) -> Attempt | None:
    """The attempt that this worker now owns, or None where nothing that waits can run here now."""
    with transaction.atomic():
        hosts = _lock_hosts(worker_id)
        if hosts[0].is_draining:
            return None
        queues = _lock_queues(hosts[0])
        devices = _lock_devices(hosts)
        room, *peers = [_Room(each, [device for device in devices if device.worker_id == each.pk]) for each in hosts]
        line = within_limits(claimable_jobs(), queues).exclude(is_for_others(room.facts, room.in_service, queues))
        passed: list[int] = []
        while room.free and (job := _first(_untried(line, passed, peers), room)):
            shares = _shares(job, room, peers)
            if shares is None:
                room.settle(job)
                passed.append(job.pk)
            elif attempt := _take(job, shares, hosts[0].now):
                return attempt
    return None


def _lock_hosts(worker_id: int) -> "list[WithAnnotations[Worker, _Clock]]":
    """This host first; where jobs of several nodes wait, then those that may take part in them.

    With the database's time, by which the attempt's lease counts.
    """
    wanted = Q(pk=worker_id)
    if Job.objects.filter(state=State.QUEUED, num_nodes__gt=1).exists():
        others = online_workers().filter(is_draining=False, queues__workers=worker_id)
        wanted |= Q(pk__in=others.values("pk"))
    hosts = Worker.objects.select_for_update(no_key=True).annotate(now=Now())
    locked = list(hosts.filter(wanted).order_by("pk"))
    return sorted(locked, key=lambda worker: worker.pk != worker_id)


def _lock_queues(worker: Worker) -> list[Queue]:
    queues = Queue.objects.select_for_update(no_key=True, of=("self",)).filter(workers=worker)
    return list(queues.order_by("pk"))


def _lock_devices(workers: Sequence[Worker]) -> list[Device]:
    devices = Device.objects.select_for_update(no_key=True).filter(worker__in=workers)
    return [device for device in devices.order_by("worker_id", "kind", "index") if device.is_in_service]


def _untried(line: QuerySet[Job], passed: list[int], peers: Sequence["_Room"]) -> QuerySet[Job]:
    """What is left of the line; jobs of several nodes only where there are others, and not for ever."""
    line = line.exclude(pk__in=passed) if passed else line
    return line if peers and len(passed) < _MOST_PASSED else line.filter(num_nodes=1)


def _shares(job: Job, room: "_Room", peers: Sequence["_Room"]) -> list[Share] | None:
    """What the job gets on each of its hosts, this one first; None where any of it is not free now."""
    spec = job.train_spec
    own = devices_needed(spec, room.facts, room.free_for(job))
    if own is None:
        return None
    shares = [(room.worker, own)]
    if spec.num_nodes > 1:
        held = held_before(job, Queue.objects.filter(workers__in=[peer.worker for peer in peers]).distinct())
        alike = [peer for peer in peers if likeness(spec, peer.facts) == likeness(spec, room.facts)]
        found = ((peer.worker, peer.devices_for(job, held)) for peer in alike)
        shares += [(worker, devices) for worker, devices in found if devices][: spec.num_nodes - 1]
    return shares if len(shares) == spec.num_nodes else None


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

    def free_for(self, job: Job) -> list[Device]:
        """What is free and of the type that the job's study is done on."""
        of_its = of_its_type(job, self.in_service)
        return [device for device in self.free if device in of_its]

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
        except InvalidSpec:
            logger.warning("job %s is left waiting: its spec is not valid in this version", job.pk)
            return False

    def settle(self, job: Job) -> None:
        """Decide whether a job that cannot start holds back what it needs here: only on its best hosts, if overdue."""
        if timezone.now() - job.queued_at >= timedelta(seconds=timings().reserve_after_s):
            kind = resolve_device_kind(job.train_spec, self.facts)
            (self.held if self.worker in best_hosts(job) else self.left).add(kind)

    def devices_for(self, job: Job, held: set[tuple[int, str]]) -> list[Device] | None:
        """What this host has free for a job that another host claims; None where it cannot take part now."""
        spec = job.train_spec
        serves = any(queue.pk == job.queue_id for queue in self.worker.queues.all())
        if not serves or (self.worker.pk, resolve_device_kind(spec, self.facts)) in held or not self.accepts(job):
            return None
        return devices_needed(spec, self.facts, self.free_for(job))


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


def _take(job: Job, shares: list[Share], now: datetime) -> Attempt | None:
    """Make the job the first host's, or None where it was cancelled or moved since it was read."""
    unchanged = Job.objects.filter(
        pk=job.pk, state=State.QUEUED, fence=job.fence, queue=job.queue_id, cancel_requested_at=None
    )
    job.state, job.fence = State.STARTING, job.fence + 1
    if unchanged.update(state=job.state, fence=job.fence) != 1:
        return None
    (worker, _own), *others = shares
    lease_expires_at = now + timedelta(seconds=timings().lease_s)
    attempt = Attempt.objects.create(
        job=job,
        number=job.attempts.count() + 1 if job.last_attempt_id else 1,
        fence=job.fence,
        worker=worker,
        claimed_at=now,
        heartbeat_at=now,
        lease_expires_at=lease_expires_at,
    )
    for rank, (host, _devices) in enumerate(others, start=1):
        AttemptNode.objects.create(attempt=attempt, rank=rank, worker=host, lease_expires_at=lease_expires_at)
    devices = [device for _host, some in shares for device in some]
    leased = Device.objects.filter(pk__in=[device.pk for device in devices], attempt=None).update(attempt=attempt)
    if leased != len(devices):
        raise RuntimeError("a device was leased twice although its row is locked")
    job.last_attempt = attempt
    Job.objects.filter(pk=job.pk).update(last_attempt=attempt)
    keep_type(job, devices)
    places = [f"{host} on {', '.join(f'{each.kind}:{each.index}' for each in some)}" for host, some in shares]
    logger.info("claimed by %s", "; ".join(places), extra=fields_of(attempt))
    return attempt
