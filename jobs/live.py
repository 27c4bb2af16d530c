"""The hub: one task per web process that reads the database once per tick for all who watch, and fans out.

Messages are hints and new points; the truth is fetched over HTTP. A page says what it watches (topics), gets `hello`
once everything that is stored later will reach it, and then fetches what it missed, so that there is no gap.
A viewer that does not keep up gets `resync` in place of what it could not take.
"""

import asyncio
import json
import logging
import signal
import threading
import zlib
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from asgiref.sync import sync_to_async
from django.db import Error as DatabaseError
from django.db import connections
from django.db.models import Count, Max, Sum

from jobs.contract.states import OPEN_STATES
from jobs.curves import Floats
from jobs.models import AuditEntry, Device, Job, Queue, Worker
from jobs.selectors.curves import ChunkView, flushes_told, new_chunks

logger = logging.getLogger(__name__)

TICK_S = 0.25
HEARTBEAT_S = 15.0
LONGEST_STREAM_S = 900.0  # then the page connects again, and its access is checked anew
MOST_WAITING_MESSAGES = 256
AFTER_FAILURE_S = 2.0


@dataclass(frozen=True)
class Topics:
    """What one page watches. `teams` are those whose list it shows: None for all of them."""

    jobs: frozenset[int] = frozenset()
    gone: frozenset[int] = frozenset()  # jobs that it shows, and that are not there to be seen any more
    job_list: bool = False
    teams: frozenset[int] | None = None
    fleet: bool = False
    queue: int | None = None
    studies: frozenset[int] = frozenset()


@dataclass(frozen=True)
class JobNow:
    """What of a job changes while it is watched."""

    state: str
    phase: str
    step: int
    attempt: int | None
    cancel: bool

    def message(self, job_id: int) -> bytes:
        """The event that a page gets."""
        return encode("job", {"id": job_id} | self.__dict__)


@dataclass(frozen=True)
class OpenJobs:
    """The jobs of one team, queue and state that have not ended, as few numbers that change with any of them."""

    team: int
    queue: int
    state: str
    num_jobs: int
    sum_of_ids: int
    sum_of_fences: int
    num_cancelled: int


@dataclass(frozen=True)
class Reading:
    """What one tick saw."""

    jobs: dict[int, JobNow] = field(default_factory=dict)
    chunks: list[ChunkView] = field(default_factory=list)
    open_jobs: list[OpenJobs] = field(default_factory=list)
    fleet: str = ""
    queues: dict[int, str] = field(default_factory=dict)  # by queue
    studies: dict[int, str] = field(default_factory=dict)  # those that somebody watches
    missed: frozenset[int] = frozenset()  # jobs whose newest points have to be fetched: they are not flushes any more


class Viewer:
    """One open page: what it watches, and the messages that wait for it."""

    def __init__(self, topics: Topics) -> None:
        self.topics = topics
        self.is_greeted = False
        self.seen_list = ""
        self.seen_fleet = ""
        self.seen_queue = ""
        self.seen_studies: dict[int, str] = {}
        self.messages: asyncio.Queue[bytes | None] = asyncio.Queue(MOST_WAITING_MESSAGES)

    def offer(self, message: bytes | None) -> None:
        """Queue a message; where there is no room, everything waiting gives way to one `resync`."""
        try:
            self.messages.put_nowait(message)
        except asyncio.QueueFull:
            while not self.messages.empty():
                self.messages.get_nowait()
            self.messages.put_nowait(encode("resync", {}))
            if message is None:
                self.messages.put_nowait(None)


class Reader:
    """Reads for all viewers at once; remembers how far each attempt's points were read."""

    def __init__(self) -> None:
        self._positions: dict[int, int] = {}
        self._watched: frozenset[int] = frozenset()

    def read(self, watched: Topics) -> Reading:
        """One look at everything that somebody watches: a handful of queries."""
        jobs = _jobs_now(watched.jobs)
        chunks, missed = self._read_chunks(jobs)
        open_jobs = read_open_jobs() if watched.job_list or watched.fleet else []
        fleet = fleet_version(open_jobs) if watched.fleet else ""
        queues = queue_versions(open_jobs) if watched.fleet else {}
        studies = study_versions(watched.studies)
        return Reading(jobs, chunks, open_jobs, fleet, queues, studies, missed)

    def _read_chunks(self, jobs: Mapping[int, JobNow]) -> tuple[list[ChunkView], frozenset[int]]:
        """What was told since the last reading, and the jobs whose points were compacted before they were read."""
        attempts = {now.attempt: job_id for job_id, now in jobs.items() if now.attempt}
        told = flushes_told(attempts)
        # An attempt that began under our eyes is read from its start; the past of any other is fetched by the pages.
        begins = {pk: -1 if attempts[pk] in self._watched else told.get(pk, -1) for pk in attempts}
        self._positions = {pk: self._positions.get(pk, begin) for pk, begin in begins.items()}
        self._watched = frozenset(jobs)
        behind = {pk: position for pk, position in self._positions.items() if position < told.get(pk, -1)}
        chunks = list(new_chunks(behind))
        missed = behind.keys() - {chunk.attempt_id for chunk in chunks}
        self._positions |= {pk: told[pk] for pk in missed} | {chunk.attempt_id: chunk.sequence for chunk in chunks}
        return chunks, frozenset(attempts[pk] for pk in missed)


def _jobs_now(ids: Collection[int]) -> dict[int, JobNow]:
    if not ids:
        return {}
    rows = Job.objects.filter(pk__in=ids).values_list(
        "pk", "state", "last_attempt__phase", "last_attempt__last_step", "last_attempt_id", "cancel_requested_at"
    )
    return {
        pk: JobNow(state, phase or "", step or 0, attempt, cancel is not None)
        for pk, state, phase, step, attempt, cancel in rows.order_by("pk")
    }


def read_open_jobs() -> list[OpenJobs]:
    """Every job that has not ended, counted; one index holds all of it, so thousands cost some milliseconds."""
    groups = Job.objects.filter(outcome=None, state__in=OPEN_STATES).order_by("team", "queue", "state")
    counted = groups.values("team", "queue", "state").annotate(
        num_jobs=Count("pk"),
        sum_of_ids=Sum("pk"),
        sum_of_fences=Sum("fence"),
        num_cancelled=Count("cancel_requested_at"),
    )
    return [OpenJobs(**group) for group in counted]


def list_version(open_jobs: Iterable[OpenJobs], teams: frozenset[int] | None) -> str:
    """Changes whenever a job of these teams enters, changes its state or ends."""
    return _digest([group for group in open_jobs if teams is None or group.team in teams])


def queue_versions(open_jobs: Iterable[OpenJobs]) -> dict[int, str]:
    """For each queue by its id, what changes whenever its line or its settings do, or anybody acts on anything."""
    last_act = AuditEntry.objects.order_by().aggregate(last=Max("pk"))["last"]
    groups = list(open_jobs)
    return {
        pk: _digest([last_act, [group for group in groups if group.queue == pk]])
        for pk in Queue.objects.order_by("pk").values_list("pk", flat=True)
    }


def study_versions(ids: Collection[int]) -> dict[int, str]:
    """For each study by its id, what changes whenever somebody acts on it: pauses, resumes, extends, shares it."""
    if not ids:
        return {}
    acts = AuditEntry.objects.filter(study__in=ids).order_by().values_list("study").annotate(last=Max("pk"))
    last = dict(acts)
    return {pk: _digest([pk, last.get(pk)]) for pk in ids}


def fleet_version(open_jobs: Iterable[OpenJobs]) -> str:
    """Changes whenever a queue, a worker, a device's lease or the number of waiting jobs does."""
    queues = Queue.objects.order_by("pk").values_list("pk", "paused_at", "pause_reason")
    workers = Worker.objects.order_by("pk").values_list(
        "pk", "heartbeat_at", "stopped_at", "is_draining", "forgotten_at"
    )
    devices = Device.objects.order_by("pk").values_list(
        "pk", "attempt_id", "is_present", "quarantine_reason", "foreign_use", "sampled_at"
    )
    return _digest([list(open_jobs), list(queues), list(workers), list(devices)])


def _digest(values: object) -> str:
    return f"{zlib.crc32(repr(values).encode()):08x}"


def encode(event: str, data: Mapping[str, Any]) -> bytes:
    """One server-sent event."""
    return f"event: {event}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


def plain_series(chunk: ChunkView) -> dict[str, dict[str, list[Any]]]:
    """A chunk's points by series; numbers that are not finite become null, which breaks a line."""
    series: dict[str, dict[str, list[Any]]] = {}
    for frame in chunk.frames:
        for name, values in frame.series.items():
            known = series.setdefault(name, {"step": [], "wall": [], "y": []})
            known["step"] += frame.steps.tolist()
            known["wall"] += finite_or_none(frame.wall_s)
            known["y"] += finite_or_none(values)
    return series


def finite_or_none(values: Floats) -> list[float | None]:
    """The values as JSON can carry them."""
    return [value if finite else None for value, finite in zip(values.tolist(), np.isfinite(values), strict=True)]


class Hub:
    """All viewers of this process and the one task that reads for them. Used from one event loop."""

    def __init__(self, reader: Reader | None = None) -> None:
        self._reader = reader or Reader()
        self._viewers: set[Viewer] = set()
        self._last: dict[int, JobNow] = {}
        self._task: asyncio.Task[None] | None = None
        self._arrived = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "live-reader")  # one thread, so that it keeps one connection
        self.is_closing = False

    def join(self, topics: Topics) -> Viewer:
        """A new viewer; the hub starts reading with the first one."""
        viewer = Viewer(topics)
        self._viewers.add(viewer)
        self._arrived.set()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())
        return viewer

    def leave(self, viewer: Viewer) -> None:
        """The viewer's page is gone; with the last one the hub stops reading."""
        self._viewers.discard(viewer)
        self._arrived.set()

    def close(self) -> None:
        """End every stream: the server is about to stop."""
        self.is_closing = True
        for viewer in self._viewers:
            viewer.offer(None)

    async def _run(self) -> None:
        """Reads while somebody watches; who comes while the last one's connection is being closed is not missed."""
        while self._viewers and not self.is_closing:
            await self._read_for_all()

    async def _read_for_all(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._viewers and not self.is_closing:
                await self._tick(loop)
                await self._pause()
        finally:
            self._last = {}
            await loop.run_in_executor(self._thread, connections.close_all)

    async def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read once and hand on; a database that is away is tried again, and the viewers stay."""
        self._arrived.clear()
        viewers = list(self._viewers)
        try:
            reading = await loop.run_in_executor(self._thread, self._reader.read, _union(viewers))
        except DatabaseError:
            logger.exception("the live page's reading failed; next try in %s s", AFTER_FAILURE_S)
            await loop.run_in_executor(self._thread, connections.close_all)
            _tell_away(viewers)
            await asyncio.sleep(AFTER_FAILURE_S)
            return
        self._hand_on(reading, viewers)

    async def _pause(self) -> None:
        try:
            await asyncio.wait_for(self._arrived.wait(), TICK_S)
        except TimeoutError:
            return

    def _hand_on(self, reading: Reading, viewers: list[Viewer]) -> None:
        changed = {pk: now.message(pk) for pk, now in reading.jobs.items() if self._last.get(pk) != now}
        gone = self._last.keys() - reading.jobs.keys()
        attempts = {now.attempt: pk for pk, now in reading.jobs.items()}
        points = [
            (attempts[chunk.attempt_id], _points_message(attempts[chunk.attempt_id], chunk)) for chunk in reading.chunks
        ]
        self._last = reading.jobs
        versions: dict[frozenset[int] | None, str] = {}
        for viewer in viewers:
            wanted = viewer.topics.jobs
            for pk, message in points:
                if pk in wanted and viewer.is_greeted:
                    viewer.offer(message)
            if viewer.is_greeted and wanted & reading.missed:
                viewer.offer(encode("resync", {}))
            if viewer.is_greeted:
                _offer_all(viewer, (message for pk, message in changed.items() if pk in wanted))
                _offer_all(viewer, (encode("gone", {"id": pk}) for pk in wanted & gone))
            else:
                self._greet(viewer)
            _offer_versions(viewer, reading, versions)

    def _greet(self, viewer: Viewer) -> None:
        viewer.is_greeted = True
        viewer.offer(encode("hello", {}))
        _offer_all(viewer, (encode("gone", {"id": pk}) for pk in viewer.topics.gone))
        _offer_all(viewer, (self._last[pk].message(pk) for pk in viewer.topics.jobs if pk in self._last))


def _tell_away(viewers: Iterable[Viewer]) -> None:
    """The pages say that the database is away; greeted again when it is back, they fetch what they missed."""
    for viewer in viewers:
        viewer.is_greeted = False
        viewer.offer(encode("away", {}))


def _offer_all(viewer: Viewer, messages: Iterable[bytes]) -> None:
    for message in messages:
        viewer.offer(message)


def _offer_versions(viewer: Viewer, reading: Reading, versions: dict[frozenset[int] | None, str]) -> None:
    topics = viewer.topics
    if topics.job_list:
        if topics.teams not in versions:
            versions[topics.teams] = list_version(reading.open_jobs, topics.teams)
        if versions[topics.teams] != viewer.seen_list:
            viewer.seen_list = versions[topics.teams]
            viewer.offer(encode("jobs", {"version": viewer.seen_list}))
    if topics.queue is not None and reading.queues.get(topics.queue, "") != viewer.seen_queue:
        viewer.seen_queue = reading.queues.get(topics.queue, "")
        viewer.offer(encode("queue", {"version": viewer.seen_queue}))
    if topics.fleet and reading.fleet != viewer.seen_fleet:
        viewer.seen_fleet = reading.fleet
        viewer.offer(encode("fleet", {"version": viewer.seen_fleet}))
    for pk in sorted(topics.studies):
        if (version := reading.studies.get(pk, "")) != viewer.seen_studies.get(pk):
            viewer.seen_studies[pk] = version
            viewer.offer(encode("study", {"id": pk, "version": version}))


def _points_message(job_id: int, chunk: ChunkView) -> bytes:
    place = {"attempt": chunk.attempt_id, "first": chunk.first, "sequence": chunk.sequence}
    return encode("points", {"job": job_id} | place | {"series": plain_series(chunk)})


def _union(viewers: Iterable[Viewer]) -> Topics:
    topics = [viewer.topics for viewer in viewers]
    return Topics(
        jobs=frozenset().union(*(topic.jobs for topic in topics)),
        job_list=any(topic.job_list for topic in topics),
        fleet=any(topic.fleet or topic.queue is not None for topic in topics),
        studies=frozenset().union(*(topic.studies for topic in topics)),
    )


_hubs: dict[asyncio.AbstractEventLoop, Hub] = {}


def running_hub() -> Hub:
    """The hub of this event loop, made when first asked for."""
    loop = asyncio.get_running_loop()
    if loop not in _hubs:
        _hubs.clear()
        _hubs[loop] = Hub()
        _close_on_signal(_hubs[loop])
    return _hubs[loop]


def _close_on_signal(hub: Hub) -> None:
    """End the streams when the server is told to stop: it waits for open responses and does not tell them."""
    if threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        before = signal.getsignal(number)
        if callable(before):
            signal.signal(number, _then(lambda: loop.call_soon_threadsafe(hub.close), before))


def _then(first: Any, handler: Any) -> Any:
    def handle(number: int, frame: Any) -> None:
        first()
        handler(number, frame)

    return handle


async def stream(topics: Topics) -> AsyncIterator[bytes]:
    """The events of one page, until it leaves or the server stops. Holds no database connection."""
    await sync_to_async(connections.close_all)()
    hub = running_hub()
    viewer = hub.join(topics)
    ends_at = asyncio.get_running_loop().time() + LONGEST_STREAM_S
    try:
        yield b": connected\n\n"
        while not hub.is_closing and asyncio.get_running_loop().time() < ends_at:
            try:
                message = await asyncio.wait_for(viewer.messages.get(), HEARTBEAT_S)
            except TimeoutError:
                message = b": alive\n\n"
            if message is None:
                return
            yield message
    finally:
        hub.leave(viewer)
