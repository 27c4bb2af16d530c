"""How long jobs waited, how they ended, and how much of the devices was used: over a day or a week."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import numpy as np
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from jobs.models import Attempt, AttemptNode, Device, DeviceUse, Queue, Worker


class Span(StrEnum):
    """How far back a chart looks."""

    DAY = "day"
    WEEK = "week"


# No attempt is looked for that began longer ago; the index on its beginning bounds what is read.
_LONGEST = timedelta(days=30)

_BUCKETS = {Span.DAY: (timedelta(hours=1), 24), Span.WEEK: (timedelta(hours=6), 28)}


@dataclass(frozen=True)
class Buckets:
    """The time that a chart shows, cut into equal parts; the last one ends now."""

    starts: list[datetime]
    size: timedelta

    @property
    def began_at(self) -> datetime:
        """Where the first one begins."""
        return self.starts[0]

    @property
    def ends_at(self) -> datetime:
        """Where the last one ends."""
        return self.starts[-1] + self.size

    def index_of(self, moment: datetime) -> int:
        """The part in which a moment lies."""
        return int((moment - self.began_at) / self.size)


def buckets_of(span: Span, now: datetime | None = None) -> Buckets:
    """The parts of a day or a week up to now."""
    size, count = _BUCKETS[span]
    now = now or timezone.now()
    return Buckets([now - size * (count - number) for number in range(count)], size)


@dataclass(frozen=True)
class Waits:
    """How long jobs had waited that started in each part of the time; None where none started."""

    buckets: Buckets
    num_started: list[int]
    median_s: list[float | None]
    p90_s: list[float | None]


@dataclass(frozen=True)
class Outcomes:
    """How many attempts ended in each part of the time, by outcome."""

    buckets: Buckets
    counts: dict[str, list[int]]


@dataclass(frozen=True)
class HostUse:
    """One host's devices of one kind: the share of their time in each part, 0 to 1."""

    hostname: str
    kind: str
    num_devices: int
    leased: list[float]  # taken by jobs
    busy: list[float | None]  # as the devices themselves told; None where they did not


@dataclass(frozen=True)
class FleetUse:
    """Every host that has been heard of lately."""

    buckets: Buckets
    hosts: list[HostUse]


def _first_starts(since: datetime, until: datetime) -> QuerySet[Attempt]:
    """First attempts that began in a time.

    What is tried again has waited for its turn once already, and a job that was queued again counts from then.
    """
    started = Attempt.objects.filter(number=1, claimed_at__gte=since, claimed_at__lt=until)
    return started.filter(claimed_at__gte=F("job__queued_at"), job__origin="submitted").order_by()


def recent_waits_s(past: timedelta = timedelta(hours=1)) -> dict[int, list[float]]:
    """The waits of the jobs that started lately, by the ids of their queues."""
    now = timezone.now()
    waits: dict[int, list[float]] = defaultdict(list)
    rows = _first_starts(now - past, now).values_list("job__queue", "claimed_at", "job__queued_at")
    for queue_id, claimed_at, queued_at in rows:
        waits[queue_id].append((claimed_at - queued_at).total_seconds())
    return waits


def read_waits(span: Span, queue: Queue | None = None, now: datetime | None = None) -> Waits:
    """The waits of first attempts, of one queue or of all; one query."""
    buckets = buckets_of(span, now)
    started = _first_starts(buckets.began_at, buckets.ends_at)
    if queue is not None:
        started = started.filter(job__queue=queue)
    waits: dict[int, list[float]] = defaultdict(list)
    for claimed_at, queued_at in started.values_list("claimed_at", "job__queued_at"):
        waits[buckets.index_of(claimed_at)].append((claimed_at - queued_at).total_seconds())
    parts = [waits.get(index, []) for index in range(len(buckets.starts))]
    return Waits(
        buckets,
        num_started=[len(part) for part in parts],
        median_s=[_percentile(part, 50) for part in parts],
        p90_s=[_percentile(part, 90) for part in parts],
    )


def _percentile(values: list[float], percent: float) -> float | None:
    return float(np.percentile(values, percent)) if values else None


def read_outcomes(span: Span, queue: Queue | None = None, now: datetime | None = None) -> Outcomes:
    """What ended, by outcome; one query."""
    buckets = buckets_of(span, now)
    ended = Attempt.objects.filter(ended_at__gte=buckets.began_at, ended_at__lt=buckets.ends_at)
    ended = ended.filter(claimed_at__gte=buckets.began_at - _LONGEST, job__origin="submitted")
    if queue is not None:
        ended = ended.filter(job__queue=queue)
    counts: dict[str, list[int]] = defaultdict(lambda: [0] * len(buckets.starts))
    for outcome, ended_at in ended.values_list("outcome", "ended_at"):
        if outcome and ended_at:
            counts[outcome][buckets.index_of(ended_at)] += 1
    return Outcomes(buckets, dict(counts))


def read_use(span: Span, now: datetime | None = None) -> FleetUse:
    """How much of each host's devices was leased and busy; four queries."""
    buckets = buckets_of(span, now)
    workers = Worker.objects.filter(heartbeat_at__gte=buckets.began_at, forgotten_at=None)
    devices = Device.objects.filter(worker__in=workers, is_present=True).select_related("worker")
    groups: dict[tuple[int, str], list[Device]] = defaultdict(list)
    for device in devices.order_by("worker__hostname", "-kind", "index"):
        groups[device.worker_id, device.kind].append(device)
    leased, busy = _leased_s(buckets), _busy_shares(buckets, groups)
    hosts = [
        HostUse(
            hostname=group[0].worker.hostname,
            kind=kind,
            num_devices=len(group),
            leased=[min(1.0, seconds / _capacity_s(buckets, len(group))) for seconds in leased[worker_id, kind]],
            busy=busy[worker_id, kind],
        )
        for (worker_id, kind), group in groups.items()
    ]
    return FleetUse(buckets, hosts)


def _capacity_s(buckets: Buckets, num_devices: int) -> float:
    return num_devices * buckets.size.total_seconds()


def _leased_s(buckets: Buckets) -> dict[tuple[int, str], list[float]]:
    """Device-seconds that jobs held in each part, by worker and kind of device."""
    ended = Q(ended_at__gt=buckets.began_at, claimed_at__gte=buckets.began_at - _LONGEST)
    held = Attempt.objects.filter(Q(ended_at=None) | ended, claimed_at__lt=buckets.ends_at)
    rows = held.exclude(worker=None).values_list(
        "pk", "worker", "claimed_at", "ended_at", "resolved_spec", "job__device_kind", "job__num_devices"
    )
    seconds: dict[tuple[int, str], list[float]] = defaultdict(lambda: [0.0] * len(buckets.starts))
    others = _other_hosts(held)
    for attempt, worker, claimed_at, ended_at, resolved, kind, count in rows:
        kind, count = _leases(resolved, kind, count)
        until = ended_at or buckets.ends_at
        for index, overlap_s in _overlaps(buckets, claimed_at, until):
            for host in (worker, *others.get(attempt, ())):
                seconds[host, kind][index] += count * overlap_s
    return seconds


def _other_hosts(held: QuerySet[Attempt]) -> dict[int, list[int]]:
    """The workers that take part in attempts beside the first one, by the attempts' ids; each gives as much."""
    others: dict[int, list[int]] = defaultdict(list)
    nodes = AttemptNode.objects.filter(attempt__in=held.order_by()).exclude(worker=None).order_by("rank")
    for attempt, worker in nodes.values_list("attempt", "worker"):
        others[attempt].append(worker)
    return others


def _leases(resolved: dict[str, Any] | None, kind: str, count: int) -> tuple[str, int]:
    """Kind and number of the devices that an attempt held; an open choice is a CPU until the engine has resolved it."""
    if resolved:
        kind, count = resolved["device"], resolved["num_devices"]
    return ("cuda", count) if kind == "cuda" else ("cpu", 1)


def _overlaps(buckets: Buckets, begin: datetime, end: datetime) -> Iterable[tuple[int, float]]:
    """The parts that a time touches, with the seconds that lie in each."""
    first = max(0, buckets.index_of(max(begin, buckets.began_at)))
    for index in range(first, len(buckets.starts)):
        opens = buckets.starts[index]
        overlap_s = (min(end, opens + buckets.size) - max(begin, opens)).total_seconds()
        if overlap_s <= 0:
            return
        yield index, overlap_s


def _busy_shares(
    buckets: Buckets, groups: dict[tuple[int, str], list[Device]]
) -> dict[tuple[int, str], list[float | None]]:
    """What the devices told of their utilization, the mean of all samples of each part."""
    group_of = {device.pk: key for key, devices in groups.items() for device in devices}
    sums: dict[tuple[Any, int], list[float]] = defaultdict(lambda: [0.0, 0.0])
    uses = DeviceUse.objects.filter(device__in=group_of, began_at__gte=buckets.began_at, began_at__lt=buckets.ends_at)
    for device, began_at, total, count in uses.values_list(
        "device", "began_at", "utilization_sum_percent", "num_samples"
    ):
        known = sums[group_of[device], buckets.index_of(began_at)]
        known[0] += total
        known[1] += count
    return {key: [_share(sums.get((key, index))) for index in range(len(buckets.starts))] for key in groups}


def _share(known: list[float] | None) -> float | None:
    return known[0] / known[1] / 100 if known and known[1] else None
