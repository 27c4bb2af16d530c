"""When the jobs of a line will start: the line played through against what runs, with measured step times.

The play follows the claim: all queues that the workers serve in one order, devices all or nothing, the limits of each
queue, reservations. What it cannot know (what is submitted later, what fails early) it leaves out, so its answers are
estimates.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone

from jobs.contract.catalog import Catalog
from jobs.contract.errors import InvalidSpec
from jobs.contract.facts import HostFacts
from jobs.contract.rules import check, refusals
from jobs.contract.spec import DeviceKind, TrainSpec, parse_spec
from jobs.contract.states import LIVE_STATES, State
from jobs.models import Attempt, AttemptNode, Device, Job, Queue, Worker
from jobs.selectors.durations import Durations, Spec, measured_durations, remaining_s
from jobs.selectors.fleet import with_devices
from jobs.selectors.hosts import likeness, online_workers
from jobs.selectors.line import count_up_to, is_held, place_of, waiting_in
from jobs.selectors.study_devices import Types, suits, types_in
from jobs.timings import timings

# How many jobs ahead are played through; what waits further back is said to start later.
MOST_PLAYED = 200


@dataclass(frozen=True)
class _Asker:
    """What of a job decides when it may start; jobs that are alike in this wait for the same."""

    queue: int
    owner: int
    device: str
    num_devices: int
    num_nodes: int
    able: frozenset[int]  # the hosts whose rules let it run


@dataclass
class _Host:
    """One worker's devices in service: when each is free, in seconds from now."""

    index: int
    kinds: dict[str, list[float]]
    queues: set[int]
    facts: HostFacts
    catalog: Catalog

    def likeness(self, asker: _Asker) -> tuple[str, ...]:
        """What the other nodes of a job must have in common with this one."""
        return likeness(TrainSpec(device=DeviceKind(asker.device)), self.facts)

    def accepts(self, job: Job, types: Types) -> bool:
        """Whether rules and study let a job run here; a spec that this version cannot read runs nowhere."""
        try:
            return not refusals(check(parse_spec(job.spec), self.facts, self.catalog)) and suits(job, self.facts, types)
        except InvalidSpec:
            return False

    def demand(self, asker: _Asker) -> tuple[str, int]:
        """The kind of device that a job takes here, and how many."""
        auto = "cuda" if "cuda" in self.kinds else "cpu"
        kind = auto if asker.device == "auto" else asker.device
        return kind, 1 if kind == "cpu" else asker.num_devices

    def num_lacking(self, asker: _Asker, at_s: float) -> float:
        """How many devices the job lacks here at that time; infinity where there will never be as many."""
        kind, count = self.demand(asker)
        ends = self.kinds.get(kind, [])
        if asker.queue not in self.queues or self.index not in asker.able or len(ends) < count:
            return math.inf
        return max(0, count - sum(end <= at_s for end in ends))

    def take(self, asker: _Asker, until_s: float) -> None:
        """Let a job hold the devices that are free first."""
        kind, count = self.demand(asker)
        ends = sorted(self.kinds[kind])
        self.kinds[kind] = [*ends[count:], *[until_s] * count]


@dataclass
class _Play:
    """The state of the play."""

    hosts: list[_Host]
    durations: Durations
    limits: dict[int, Queue]
    types: Mapping[int, Types]  # of device, by queue
    at_s: float = 0.0
    ends: dict[Any, list[float]] = field(default_factory=lambda: defaultdict(list))  # by queue, and by queue and owner
    able: dict[str, frozenset[int]] = field(default_factory=dict)  # by queue, study and spec, seeds aside

    def run(self, line: Sequence[Job]) -> dict[int, float]:
        """When each job of the line starts, by its id; those of which that cannot be told are left out."""
        starts: dict[int, float] = {}
        waiting, askers = list(line), {job.pk: self._asker(job) for job in line}
        while waiting and not math.isinf(self.at_s):
            started = self._start_all_that_may(waiting, askers)
            starts |= dict.fromkeys(started, self.at_s)
            waiting = [job for job in waiting if job.pk not in started]
            later = [end for ends in self._all_ends() for end in ends if end > self.at_s]
            self.at_s = min(later, default=math.inf)
        return starts

    def note(self, queue: int, owner: int, until_s: float) -> None:
        """A job of that queue and owner runs until then."""
        self.ends[queue].append(until_s)
        self.ends[queue, owner].append(until_s)

    def _asker(self, job: Job) -> _Asker:
        spec = job.spec
        asked = sorted((name, value) for name, value in spec.items() if name != "seed")
        key = repr((job.queue_id, job.study_id, asked))
        if key not in self.able:
            types = self.types.get(job.queue_id, {})
            self.able[key] = frozenset(host.index for host in self.hosts if host.accepts(job, types))
        sizes = (spec.get("num_devices", 1), spec.get("num_nodes", 1))
        return _Asker(job.queue_id, job.owner_id, spec.get("device", "auto"), *sizes, self.able[key])

    def _all_ends(self) -> Iterator[list[float]]:
        yield from self.ends.values()
        for host in self.hosts:
            yield from host.kinds.values()

    def _start_all_that_may(self, waiting: Sequence[Job], askers: Mapping[int, _Asker]) -> set[int]:
        """What starts at this moment. Room only shrinks meanwhile, so who is like one that had to wait waits too."""
        started: set[int] = set()
        too_late: set[_Asker] = set()
        held: set[tuple[int, str]] = set()
        for job in waiting:
            asker = askers[job.pk]
            if asker in too_late and not self._holds(job, asker):
                continue
            hosts = self._free_hosts(asker, held) if self._is_allowed(asker) else []
            if hosts:
                self._start(job, asker, hosts)
                started.add(job.pk)
                continue
            too_late.add(asker)
            if self._holds(job, asker) and self._is_allowed(asker):
                held |= {(host.index, host.demand(asker)[0]) for host in self._best_hosts(asker)}
        return started

    def _free_hosts(self, asker: _Asker, held: set[tuple[int, str]]) -> list[_Host]:
        """The hosts on which the job would start now, as many as it has nodes; empty where there are too few."""
        free = [
            host
            for host in self.hosts
            if host.num_lacking(asker, self.at_s) == 0 and (host.index, host.demand(asker)[0]) not in held
        ]
        return next(self._alike(free, asker), [])

    def _alike(self, hosts: Sequence[_Host], asker: _Asker) -> Iterator[list[_Host]]:
        """The first hosts of each kind that has enough for the job's nodes."""
        if asker.num_nodes == 1:  # by far the most jobs
            yield from ([host] for host in hosts)
            return
        groups: dict[tuple[str, ...], list[_Host]] = defaultdict(list)
        for host in hosts:
            groups[host.likeness(asker)].append(host)
        yield from (group[: asker.num_nodes] for group in groups.values() if len(group) >= asker.num_nodes)

    def _start(self, job: Job, asker: _Asker, hosts: Sequence[_Host]) -> None:
        expected_s = self.durations.expected_s(job.spec, hosts[0].demand(asker)[0])
        until_s = self.at_s + (math.inf if expected_s is None else expected_s)
        for host in hosts:
            host.take(asker, until_s)
        self.note(asker.queue, asker.owner, until_s)

    def _holds(self, job: Job, asker: _Asker) -> bool:
        """Whether a job has waited so long for several devices that it holds back those of its best hosts."""
        waited_s = (timezone.now() - job.queued_at).total_seconds() + self.at_s
        return max(asker.num_devices, asker.num_nodes) > 1 and waited_s > timings().reserve_after_s

    def _best_hosts(self, asker: _Asker) -> list[_Host]:
        lacks = {host.index: host.num_lacking(asker, self.at_s) for host in self.hosts}
        able = [host for host in self.hosts if not math.isinf(lacks[host.index])]
        nearest_first = sorted(able, key=lambda host: lacks[host.index])
        groups = self._alike(nearest_first, asker)
        return min(groups, key=lambda group: sum(lacks[host.index] for host in group), default=[])

    def _is_allowed(self, asker: _Asker) -> bool:
        limits = self.limits[asker.queue]
        return self._is_below(self.ends[asker.queue], limits.max_running) and self._is_below(
            self.ends[asker.queue, asker.owner], limits.max_running_per_user
        )

    def _is_below(self, ends: list[float], limit: int | None) -> bool:
        return limit is None or sum(end > self.at_s for end in ends) < limit


def estimate_starts(queue: Queue) -> dict[int, float | None]:
    """Seconds until the jobs that wait in a queue start, by their ids; None where that cannot be told.

    Jobs that are further back than `MOST_PLAYED` are left out; so are all of a queue that is paused.
    """
    line = list(_line(queue)[:MOST_PLAYED])
    starts = _open_play(queue).run(line)
    return {job.pk: starts.get(job.pk) for job in line if job.queue_id == queue.pk}


def estimate_start(spec: Spec, queue: Queue, owner_id: int) -> float | None:
    """Seconds until a job would start that is submitted to the queue now; None where that cannot be told."""
    line = list(_line(queue)[: MOST_PLAYED + 1])
    if queue.is_paused or len(line) > MOST_PLAYED:
        return None
    behind = next((place for place, job in enumerate(line) if job.priority < queue.default_priority), len(line))
    new = Job(pk=0, spec=spec, queue=queue, owner_id=owner_id, queued_at=timezone.now())
    return _open_play(queue).run([*line[:behind], new, *line[behind:]]).get(0)


def _line(queue: Queue) -> QuerySet[Job]:
    """What waits for the same workers, the next one first."""
    rivals = Queue.objects.filter(Q(pk=queue.pk) | Q(workers__in=_serving(queue)), paused_at=None)
    # The numbers of the queues instead of a join: the index that holds the order then suffices.
    line = Job.objects.filter(
        state=State.QUEUED, cancel_requested_at=None, queue__in=set(rivals.values_list("pk", flat=True))
    )
    line = line.exclude(is_held()).order_by("-priority", "order_key", "id")
    fields = ("spec", "queue_id", "owner_id", "priority", "queued_at", "study_id", "study__device_names")
    return line.select_related("study").only(*fields)


def _serving(queue: Queue) -> QuerySet[Worker]:
    return online_workers().filter(queues=queue, is_draining=False)


def _open_play(queue: Queue) -> _Play:
    """What runs now on the workers of the queue, and in the queues that share them."""
    now, durations = timezone.now(), measured_durations()
    workers = list(with_devices(_serving(queue)).prefetch_related("queues"))
    left = remaining_s(_running_on(workers), durations, now)
    queues = {each.pk: each for worker in workers for each in worker.queues.all()}
    hosts = [_host(index, worker, left) for index, worker in enumerate(workers)]
    limits = queues | {queue.pk: queue}
    play = _Play(hosts, durations, limits, types_in(limits.values()))
    _note_running(play, left, now)
    return play


def _running_on(workers: list[Worker]) -> QuerySet[Attempt]:
    """The attempts that hold devices of the workers, though another host may lead them."""
    here = Q(worker__in=workers) | Q(pk__in=AttemptNode.objects.filter(worker__in=workers).values("attempt"))
    return Attempt.objects.filter(here, outcome=None).select_related("job")


def _host(index: int, worker: Worker, left: dict[int, float | None]) -> _Host:
    kinds: dict[str, list[float]] = defaultdict(list)
    for device in worker.devices.all():
        if device.is_in_service:
            kinds[device.kind].append(_free_at_s(device, left))
    queues = {queue.pk for queue in worker.queues.all()}
    return _Host(index, dict(kinds), queues, worker.host_facts, worker.host_catalog)


def _free_at_s(device: Device, left: dict[int, float | None]) -> float:
    if device.attempt_id is None:
        return 0.0
    remaining = left.get(device.attempt_id)
    return math.inf if remaining is None else remaining


def _note_running(play: _Play, left: dict[int, float | None], now: datetime) -> None:
    """What runs counts against the limits, wherever it runs."""
    running = Attempt.objects.filter(outcome=None, job__queue__in=list(play.limits), job__state__in=LIVE_STATES)
    attempts = list(running.select_related("job"))
    elsewhere = [attempt for attempt in attempts if attempt.pk not in left]
    left = left | remaining_s(elsewhere, play.durations, now)
    for attempt in attempts:
        remaining = left.get(attempt.pk)
        play.note(attempt.job.queue_id, attempt.job.owner_id, math.inf if remaining is None else remaining)


@dataclass(frozen=True)
class Turn:
    """Where a waiting job stands."""

    place: int
    num_waiting: int  # counted no further than one more than `MOST_COUNTED`
    starts_in_s: float | None  # None where that cannot be told
    is_told: bool  # False: it stands too far back, or its queue is paused


def turn_of(job: Job) -> Turn | None:
    """The job's place and estimated start; None where it does not wait."""
    if job.state != State.QUEUED:
        return None
    starts = {} if job.queue.is_paused else estimate_starts(job.queue)
    num_waiting = count_up_to(waiting_in(job.queue_id))
    return Turn(place_of(job), num_waiting, starts.get(job.pk), job.pk in starts)
