"""Queues and workers as they stand now, and what staff do to them."""

from datetime import datetime

import ninja
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Router, Schema, Status
from pydantic import ConfigDict, Field

from jobs.api.actions import ReasonIn
from jobs.api.auth import asker, asking_staff
from jobs.api.choices import choose_queue
from jobs.api.errors import ErrorsOut
from jobs.api.queries import Query
from jobs.contract.facts import Ceilings, Datasheet, DeviceSample
from jobs.models import Device, Queue, Worker
from jobs.selectors.fleet import DeviceState, QueueState, WorkerState, queue_states, worker_states
from jobs.selectors.line import line_page
from jobs.selectors.starts import estimate_starts
from jobs.selectors.use import Span, read_outcomes, read_use, read_waits
from jobs.services.change import MOST_PRIORITY
from jobs.services.devices import quarantine_device, release_device
from jobs.services.queues import change_queue, pause_queue, resume_queue
from jobs.services.workers import drain_worker, forget_worker, undrain_worker

router = Router(tags=["fleet"])


class QueueOut(Schema):
    """One queue; a depth of 10,001 stands for every longer line."""

    name: str
    description: str
    depth: int
    running: int
    started_last_day: int
    oldest_wait_s: float | None
    default_priority: int
    max_running: int | None
    max_running_per_user: int | None
    max_attempts: int
    is_paused: bool
    pause_reason: str
    paused_by: str
    workers: list[str]

    @classmethod
    def of(cls, state: QueueState) -> "QueueOut":
        """The queue with what waits in it."""
        return cls(
            name=state.queue.name,
            description=state.queue.description,
            depth=state.depth,
            running=state.running,
            started_last_day=state.started_last_day,
            default_priority=state.queue.default_priority,
            max_running=state.queue.max_running,
            max_running_per_user=state.queue.max_running_per_user,
            max_attempts=state.queue.max_attempts,
            oldest_wait_s=state.oldest_wait_s,
            is_paused=state.is_paused,
            pause_reason=state.pause_reason,
            paused_by=state.paused_by,
            workers=state.worker_names,
        )


class DeviceOut(Schema):
    """One device; `job` is null while it is free, `sample` is what its host last read of it."""

    id: int
    kind: str
    index: int
    name: str
    memory_bytes: int
    job: int | None
    is_present: bool
    quarantine_reason: str
    ceilings: Ceilings | None  # as they were measured; null until they were
    datasheet: Datasheet | None  # null for a device that is not known
    foreign_use: str  # whose processes are on it that are not ours
    sample: DeviceSample
    sampled_at: datetime | None

    @classmethod
    def of(cls, state: DeviceState) -> "DeviceOut":
        """The device with its lease."""
        return cls(
            id=state.device.pk,
            kind=state.device.kind,
            index=state.device.index,
            name=state.device.name,
            memory_bytes=state.device.memory_bytes,
            job=state.job_id,
            is_present=state.is_present,
            quarantine_reason=state.quarantine_reason,
            ceilings=state.facts.ceilings if state.facts else None,
            datasheet=state.facts.datasheet if state.facts else None,
            foreign_use=state.device.foreign_use,
            sample=state.sample,
            sampled_at=state.device.sampled_at,
        )


class WorkerOut(Schema):
    """One worker host."""

    id: int
    hostname: str
    is_online: bool
    is_draining: bool
    heartbeat_at: datetime
    heartbeat_age_s: float
    version: str
    queues: list[str]
    devices: list[DeviceOut]

    @classmethod
    def of(cls, state: WorkerState) -> "WorkerOut":
        """The worker with its devices."""
        return cls(
            id=state.worker.pk,
            hostname=state.worker.hostname,
            is_online=state.is_online,
            is_draining=state.is_draining,
            heartbeat_at=state.worker.heartbeat_at,
            heartbeat_age_s=state.heartbeat_age_s,
            version=state.version,
            queues=state.queue_names,
            devices=[DeviceOut.of(device) for device in state.devices],
        )


class QueuesOut(Schema):
    """All queues by name."""

    queues: list[QueueOut]


class WorkersOut(Schema):
    """All workers by host name."""

    workers: list[WorkerOut]


@router.get("/queues", response={200: QueuesOut, 401: ErrorsOut}, summary="See the queues")
def list_queues(request: HttpRequest) -> QueuesOut:
    """How much waits and runs, what is paused and why, and which workers serve each queue."""
    return QueuesOut(queues=[QueueOut.of(state) for state in queue_states()])


@router.get("/workers", response={200: WorkersOut, 401: ErrorsOut}, summary="See the workers")
def list_workers(request: HttpRequest) -> WorkersOut:
    """Every worker that was ever heard of, with its devices and what runs on them."""
    return WorkersOut(workers=[WorkerOut.of(state) for state in worker_states()])


class PauseIn(Schema):
    """Why a queue is paused: everybody whose job waits there reads it."""

    model_config = ConfigDict(extra="forbid")

    reason: str = Field(min_length=1, max_length=200)


class QueueChangeIn(ReasonIn):
    """What to set about a queue; what is left out stays, and null takes a limit away."""

    description: str = Field("", max_length=200)
    default_priority: int = Field(0, ge=-MOST_PRIORITY, le=MOST_PRIORITY)
    max_running: int | None = Field(None, ge=1, le=10_000)
    max_running_per_user: int | None = Field(None, ge=1, le=10_000)
    max_attempts: int = Field(3, ge=1, le=100)


class WaitingOut(Schema):
    """One waiting job of a line; of another team's job no more is told than that it waits."""

    place: int
    job: int
    priority: int
    owner: str | None
    title: str | None
    queued_at: datetime
    starts_in_s: float | None  # estimated; null where that cannot be told


class LineOut(Schema):
    """One page of a line; `next_after` is null on the last one."""

    waiting: list[WaitingOut]
    next_after: int | None


class LineQuery(Query):
    """Which part of the line."""

    after: int | None = Field(None, ge=1, le=2**63 - 1, description="`next_after` of the page before.")


class UseQuery(Query):
    """How far back, and of which queue."""

    span: Span = Field(Span.DAY, description="A day in hours, or a week in quarters of days.")
    queue: str | None = Field(None, description="Waits of this queue alone.")


class HostUseOut(Schema):
    """Shares of the time, 0 to 1, of one host's devices of one kind; null where they told nothing."""

    hostname: str
    kind: str
    num_devices: int
    leased: list[float]
    busy: list[float | None]


class UseOut(Schema):
    """Every list runs along `starts`, the beginnings of equal parts of the time."""

    starts: list[datetime]
    part_s: float
    num_started: list[int]
    median_wait_s: list[float | None]
    p90_wait_s: list[float | None]
    ended: dict[str, list[int]]  # by outcome
    hosts: list[HostUseOut]


_REFUSED: dict[int, type[Schema]] = {401: ErrorsOut, 403: ErrorsOut, 404: ErrorsOut, 422: ErrorsOut}


@router.get(
    "/queues/{name}/line", response={200: LineOut, 401: ErrorsOut, 404: ErrorsOut, 422: ErrorsOut}, summary="See a line"
)
def line(request: HttpRequest, name: str, query: ninja.Query[LineQuery]) -> LineOut:
    """The jobs that wait in a queue, in the order in which they will be taken."""
    queue, asked = get_object_or_404(Queue, name=name), query
    page = line_page(queue.pk, asker(request), asked.after)
    starts = {} if queue.is_paused else estimate_starts(queue)
    waiting = [
        WaitingOut(
            place=row.place,
            job=row.job.pk,
            priority=row.job.priority,
            owner=row.job.owner.get_username() if row.is_visible else None,
            title=row.job.title if row.is_visible else None,
            queued_at=row.job.queued_at,
            starts_in_s=starts.get(row.job.pk),
        )
        for row in page.rows
    ]
    return LineOut(waiting=waiting, next_after=page.next_after)


@router.patch("/queues/{name}", response={200: QueueOut} | _REFUSED, summary="Change a queue's settings")
def set_queue(request: HttpRequest, name: str, body: QueueChangeIn) -> QueueOut:
    """Limits, default priority, attempts, description: what is named. For staff."""
    user = asking_staff(request)
    values = body.model_dump(exclude_unset=True, exclude={"reason"})
    change_queue(get_object_or_404(Queue, name=name), user, body.reason, **values)
    return _queue_out(name)


@router.post("/devices/{int:device_id}/quarantine", response={204: None} | _REFUSED, summary="Take a device out")
def quarantine(request: HttpRequest, device_id: int, body: PauseIn) -> Status[None]:
    """Let nothing more start on it; what runs on it goes on. For staff."""
    user = asking_staff(request)
    quarantine_device(get_object_or_404(Device, pk=device_id), body.reason, user)
    return Status(204, None)


@router.post(
    "/devices/{int:device_id}/release", response={204: None, 409: ErrorsOut} | _REFUSED, summary="Release a device"
)
def release(request: HttpRequest, device_id: int, body: ReasonIn | None = None) -> Status[None]:
    """Put it back into service; 409 while a job runs on it. For staff."""
    user = asking_staff(request)
    release_device(get_object_or_404(Device, pk=device_id), user, body.reason if body else "")
    return Status(204, None)


@router.get(
    "/fleet/use", response={200: UseOut, 401: ErrorsOut, 403: ErrorsOut, 422: ErrorsOut}, summary="See waits and use"
)
def fleet_use(request: HttpRequest, query: ninja.Query[UseQuery]) -> UseOut:
    """How long jobs waited, how they ended, how much of the devices was held and busy. For staff."""
    asking_staff(request)
    asked: UseQuery = query
    queue = choose_queue(asked.queue) if asked.queue is not None else None
    waits, use = read_waits(asked.span, queue), read_use(asked.span)
    return UseOut(
        starts=use.buckets.starts,
        part_s=use.buckets.size.total_seconds(),
        num_started=waits.num_started,
        median_wait_s=waits.median_s,
        p90_wait_s=waits.p90_s,
        ended=read_outcomes(asked.span, queue).counts,
        hosts=[HostUseOut(**host.__dict__) for host in use.hosts],
    )


@router.post("/queues/{name}/pause", response={200: QueueOut} | _REFUSED, summary="Pause a queue")
def pause(request: HttpRequest, name: str, body: PauseIn) -> QueueOut:
    """Let nothing more be claimed from it; what runs goes on. For staff."""
    user = asking_staff(request)
    pause_queue(get_object_or_404(Queue, name=name), user, body.reason)
    return _queue_out(name)


@router.post("/queues/{name}/resume", response={200: QueueOut} | _REFUSED, summary="Resume a queue")
def resume(request: HttpRequest, name: str, body: ReasonIn | None = None) -> QueueOut:
    """Let its jobs be claimed again. For staff."""
    user = asking_staff(request)
    resume_queue(get_object_or_404(Queue, name=name), user, body.reason if body else "")
    return _queue_out(name)


def _queue_out(name: str) -> QueueOut:
    return next(QueueOut.of(state) for state in queue_states() if state.queue.name == name)


@router.post("/workers/{int:worker_id}/drain", response={200: WorkerOut} | _REFUSED, summary="Drain a worker")
def drain(request: HttpRequest, worker_id: int, body: ReasonIn | None = None) -> WorkerOut:
    """Let it take no new jobs; what runs goes on. For staff."""
    user = asking_staff(request)
    drain_worker(get_object_or_404(Worker, pk=worker_id), user, body.reason if body else "")
    return _worker_out(worker_id)


@router.post("/workers/{int:worker_id}/resume", response={200: WorkerOut} | _REFUSED, summary="End a worker's drain")
def undrain(request: HttpRequest, worker_id: int, body: ReasonIn | None = None) -> WorkerOut:
    """Let it take jobs again. For staff."""
    user = asking_staff(request)
    undrain_worker(get_object_or_404(Worker, pk=worker_id), user, body.reason if body else "")
    return _worker_out(worker_id)


@router.post(
    "/workers/{int:worker_id}/forget",
    response={204: None, 409: ErrorsOut} | _REFUSED,
    summary="Forget a dead worker",
)
def forget(request: HttpRequest, worker_id: int, body: ReasonIn | None = None) -> Status[None]:
    """Take it off the lists and free its devices; 409 while it is heard from. For staff."""
    user = asking_staff(request)
    forget_worker(get_object_or_404(Worker, pk=worker_id), user, body.reason if body else "")
    return Status(204, None)


def _worker_out(worker_id: int) -> WorkerOut:
    return next(WorkerOut.of(state) for state in worker_states() if state.worker.pk == worker_id)
