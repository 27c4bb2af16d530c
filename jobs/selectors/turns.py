"""Whose turn it is: which jobs may be claimed, in which order, and which devices each would get."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from django.db.models import Count, Prefetch, Q, QuerySet
from django.utils import timezone

from jobs.contract.facts import HostFacts
from jobs.contract.rules import check, refusals, resolve_device_kind
from jobs.contract.spec import DeviceKind, TrainSpec
from jobs.contract.states import LIVE_STATES, State
from jobs.models import Device, Job, Queue, Worker
from jobs.selectors.hosts import likeness, online_workers
from jobs.selectors.line import ahead_of, is_held
from jobs.selectors.study_devices import suits, types_for
from jobs.timings import timings

_MOST_HOLDERS = 20  # jobs ahead that are asked which devices they hold


def claimable_jobs() -> QuerySet[Job]:
    """Queued jobs whose queue and study are not paused, the next one first."""
    waiting = Job.objects.filter(state=State.QUEUED, queue__paused_at=None, cancel_requested_at=None)
    return waiting.exclude(is_held()).order_by("-priority", "order_key", "id")


def within_limits(jobs: QuerySet[Job], queues: Iterable[Queue]) -> QuerySet[Job]:
    """Those of the jobs that wait in one of the queues and that its limits let start now."""
    open_queues = [queue for queue in queues if not is_full(queue)]
    jobs = jobs.filter(queue__in=open_queues)
    for queue in open_queues:
        jobs = jobs.exclude(queue=queue, owner__in=users_at_their_limit(queue))
    return jobs


def is_full(queue: Queue) -> bool:
    """Whether as many of the queue's jobs run as may run at once."""
    return queue.max_running is not None and _running_in(queue).count() >= queue.max_running


def users_at_their_limit(queue: Queue) -> QuerySet[Job, int]:
    """The ids of users of whom as many jobs run in the queue as may run at once."""
    if queue.max_running_per_user is None:
        return Job.objects.none().values_list("owner", flat=True)
    counts = _running_in(queue).order_by().values("owner").annotate(num_running=Count("pk"))
    return counts.filter(num_running__gte=queue.max_running_per_user).values_list("owner", flat=True)


def _running_in(queue: Queue) -> QuerySet[Job]:
    return Job.objects.filter(queue=queue, state__in=LIVE_STATES)


def that_fit(facts: HostFacts, num_devices: Mapping[str, int]) -> Q:
    """The jobs for which so many devices of each kind suffice on one host; `devices_needed` as a condition."""
    auto = resolve_device_kind(TrainSpec(device=DeviceKind.AUTO), facts)
    fit = Q(pk__in=[])
    for kind, count in num_devices.items():
        asked_as = [kind, DeviceKind.AUTO] if kind == auto else [kind]
        if kind == DeviceKind.CPU:
            fit |= Q(device_kind__in=asked_as if count else [])
        else:
            fit |= Q(device_kind__in=asked_as, num_devices__lte=count)
    return fit


def devices_needed(spec: TrainSpec, facts: HostFacts, free: Sequence[Device]) -> list[Device] | None:
    """The devices that a job would get out of a host's free ones, None where they do not suffice.

    On a CPU `num_devices` counts processes, and all of them share the host's one CPU.
    """
    kind = resolve_device_kind(spec, facts)
    of_kind = [device for device in free if device.kind == kind]
    wanted = num_wanted(spec, kind)
    return of_kind[:wanted] if len(of_kind) >= wanted else None


def num_wanted(spec: TrainSpec, kind: str) -> int:
    """How many leases of that kind the job takes on each of its nodes."""
    return 1 if kind == DeviceKind.CPU else spec.num_devices


def best_hosts(job: Job) -> list[Worker]:
    """The online hosts that could run the job together and lack the fewest devices for it now; empty if too few.

    What they lack never grows while the job holds what is free there, so the choice settles and the job starts.
    """
    workers = online_workers().filter(queues=job.queue_id, is_draining=False).order_by("pk")
    spec, groups = job.train_spec, defaultdict(list)
    types = types_for(job)
    for worker in workers.prefetch_related(Prefetch("devices")):
        if suits(job, worker.host_facts, types) and _could_run(job, worker):
            groups[likeness(spec, worker.host_facts)].append((_num_lacking(job, worker), worker))
    fewest = [
        sorted(group, key=_lacking)[: spec.num_nodes] for group in groups.values() if len(group) >= spec.num_nodes
    ]
    best = min(fewest, key=lambda group: sum(map(_lacking, group)), default=[])
    return [worker for _lack, worker in best]


def _lacking(candidate: tuple[int, Worker]) -> int:
    return candidate[0]


def held_before(job: Job, queues: Iterable[Queue]) -> set[tuple[int, str]]:
    """Hosts (by their ids) and kinds of devices that jobs ahead of this one hold, having waited too long."""
    long_ago = timezone.now() - timedelta(seconds=timings().reserve_after_s)
    ahead = within_limits(claimable_jobs(), queues).filter(ahead_of(job), queued_at__lte=long_ago)
    holders = ahead.filter(Q(num_devices__gt=1) | Q(num_nodes__gt=1))[:_MOST_HOLDERS]
    return {
        (worker.pk, resolve_device_kind(each.train_spec, worker.host_facts))
        for each in holders
        if not each.stored_spec.unread  # no host takes it
        for worker in best_hosts(each)
    }


def _could_run(job: Job, worker: Worker) -> bool:
    spec, facts = job.train_spec, worker.host_facts
    in_service = [device for device in worker.devices.all() if device.is_in_service]
    return bool(devices_needed(spec, facts, in_service)) and not refusals(check(spec, facts, worker.host_catalog))


def _num_lacking(job: Job, worker: Worker) -> int:
    spec = job.train_spec
    kind = resolve_device_kind(spec, worker.host_facts)
    free = [d for d in worker.devices.all() if d.kind == kind and d.is_in_service and d.attempt_id is None]
    return num_wanted(spec, kind) - len(free)
