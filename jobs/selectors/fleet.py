"""What the queues and workers are doing now."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import IntegerField, OuterRef, Prefetch, QuerySet, Subquery
from django.utils import timezone

from jobs.contract.facts import DeviceFacts, DeviceSample
from jobs.contract.states import LIVE_STATES, State
from jobs.models import Attempt, Device, Job, Queue, Worker
from jobs.selectors.hosts import online_workers
from jobs.selectors.line import MOST_COUNTED

_DAY = timedelta(days=1)
_ARITHMETICS = ("fp32", "tf32", "fp16", "bf16", "fp8")  # in the order in which their rates are shown


@dataclass(frozen=True)
class QueueState:
    """One queue: how much waits and runs, and whether it may be claimed from."""

    queue: Queue
    depth: int
    running: int
    started_last_day: int
    oldest_wait_s: float | None  # None where nothing waits
    is_paused: bool
    pause_reason: str
    paused_by: str
    worker_names: list[str]  # the online workers that serve it


@dataclass(frozen=True)
class Rate:
    """What a device was measured to reach: products of matrices in some arithmetic (FLOP/s), or copies (bytes/s)."""

    arithmetic: str  # empty: copies
    reached_per_s: float
    peak_per_s: float | None  # by the datasheet; None where it is not known


@dataclass(frozen=True)
class DeviceState:
    """One device: free, leased to a job, or taken out of service."""

    device: Device
    job_id: int | None  # None: nothing runs on it
    quarantine_reason: str  # empty: in service
    is_present: bool
    holder: str  # whose job it is; empty where none is
    has_ended_lease: bool  # its job has ended, but nobody has seen to it that nothing is left
    sample: DeviceSample  # what its host last read; empty once the host is not heard from
    facts: DeviceFacts | None  # as its host reported it

    @property
    def rates(self) -> list[Rate]:
        """What it was measured to reach, beside its datasheet; empty until it was measured."""
        if self.facts is None or self.facts.ceilings is None:
            return []
        reached, datasheet = self.facts.ceilings, self.facts.datasheet
        peaks = datasheet.matmul_flops_per_s if datasheet else {}
        matmuls = reached.matmul_flops_per_s
        # PostgreSQL keeps a JSON object's keys in an order of its own.
        rates = [Rate(name, matmuls[name], peaks.get(name)) for name in _ARITHMETICS if name in matmuls]
        return [*rates, Rate("", reached.copy_bytes_per_s, datasheet.bytes_per_s if datasheet else None)]


@dataclass(frozen=True)
class WorkerState:
    """One worker host and its devices."""

    worker: Worker
    is_online: bool
    heartbeat_age_s: float
    is_draining: bool
    version: str
    queue_names: list[str]
    devices: list[DeviceState]


@dataclass(frozen=True)
class Totals:
    """The whole fleet in a line; devices are those of workers that are online."""

    waiting: int
    running: int
    oldest_wait_s: float | None
    devices: int
    devices_in_use: int
    out_of_service: int
    workers: int
    online: int

    @property
    def offline(self) -> int:
        """Workers that are not heard from."""
        return self.workers - self.online


def totals(queues: Sequence[QueueState], workers: Sequence[WorkerState]) -> Totals:
    """What queues and workers come to together."""
    online = [worker for worker in workers if worker.is_online]
    devices = [device for worker in online for device in worker.devices if device.is_present]
    return Totals(
        waiting=sum(queue.depth for queue in queues),
        running=sum(queue.running for queue in queues),
        oldest_wait_s=max((queue.oldest_wait_s for queue in queues if queue.oldest_wait_s is not None), default=None),
        devices=len(devices),
        devices_in_use=sum(device.job_id is not None for device in devices),
        out_of_service=sum(not device.device.is_in_service for device in devices),
        workers=len(workers),
        online=len(online),
    )


def queue_states() -> list[QueueState]:
    """All queues by name; two queries, and none reads further than `MOST_COUNTED` jobs of a queue."""
    return [_queue_state(queue) for queue in _counted(Queue.objects.all())]


def queue_state(name: str) -> QueueState:
    """One queue; raises `Queue.DoesNotExist`."""
    return _queue_state(_counted(Queue.objects.filter(name=name)).get())


class _Number(Subquery):
    """How many rows a query of limited length finds."""

    template = "(SELECT COUNT(*) FROM (%(subquery)s) counted)"
    output_field = IntegerField()


def _counted(queues: QuerySet[Queue]) -> QuerySet[Queue]:
    own = Job.objects.filter(queue=OuterRef("pk"), outcome=None).order_by()
    waiting, up_to = own.filter(state=State.QUEUED), slice(MOST_COUNTED + 1)
    started = Attempt.objects.filter(job__queue=OuterRef("pk"), claimed_at__gte=timezone.now() - _DAY).order_by()
    queues = queues.select_related("paused_by").annotate(
        depth=_Number(waiting.values("pk")[up_to]),
        running=_Number(own.filter(state__in=LIVE_STATES).values("pk")[up_to]),
        started_last_day=_Number(started.values("pk")[up_to]),
        oldest=Subquery(waiting.order_by("queued_at").values("queued_at")[:1]),
    )
    return queues.prefetch_related(Prefetch("workers", online_workers(), to_attr="online"))


def _queue_state(queue: Any) -> QueueState:
    return QueueState(
        queue=queue,
        depth=queue.depth,
        running=queue.running,
        started_last_day=queue.started_last_day,
        oldest_wait_s=(timezone.now() - queue.oldest).total_seconds() if queue.oldest else None,
        is_paused=queue.is_paused,
        pause_reason=queue.pause_reason,
        paused_by=queue.paused_by.get_username() if queue.paused_by else "",
        worker_names=[worker.hostname for worker in queue.online],
    )


def worker_states() -> list[WorkerState]:
    """All workers that are not forgotten, by host name, with their devices; four queries."""
    now = timezone.now()
    online = set(online_workers().values_list("pk", flat=True))
    return [
        WorkerState(
            worker=worker,
            is_online=worker.pk in online,
            heartbeat_age_s=max(0.0, (now - worker.heartbeat_at).total_seconds()),
            is_draining=worker.is_draining,
            version=worker.version,
            queue_names=[queue.name for queue in worker.queues.all()],
            devices=_device_states(worker, is_online=worker.pk in online),
        )
        for worker in with_devices(Worker.objects.filter(forgotten_at=None).prefetch_related("queues"))
    ]


def with_devices(workers: QuerySet[Worker]) -> QuerySet[Worker]:
    """The workers, with their devices and what those are leased to."""
    return workers.prefetch_related(Prefetch("devices", Device.objects.select_related("attempt__job__owner")))


def _device_states(worker: Worker, *, is_online: bool) -> list[DeviceState]:
    reported = {(device.kind, device.index): device for device in worker.host_facts.devices}
    return [
        _device_state(device, reported.get((device.kind, device.index)), is_online=is_online)
        for device in worker.devices.all()
    ]


def _device_state(device: Device, facts: DeviceFacts | None, *, is_online: bool) -> DeviceState:
    job = device.attempt.job if device.attempt else None
    return DeviceState(
        device=device,
        job_id=job.pk if job else None,
        quarantine_reason=device.quarantine_reason,
        is_present=device.is_present,
        facts=facts,
        has_ended_lease=device.attempt is not None and device.attempt.outcome is not None,
        holder=job.owner.get_username() if job else "",
        sample=DeviceSample.model_validate(device.sample) if is_online else DeviceSample(),
    )
