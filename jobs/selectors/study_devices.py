"""A study is done on one type of device of each kind, its first run's, so that its runs can be held against each other.

Runs that leave the kind to the host (`device: auto`) keep to the kind that the first of them got. Where a queue's
workers have several types, those of another type pass its runs by for as long as the queue has a worker with the right
one; that may be away for a while. Once staff have forgotten the last such worker, the study goes on with what is there.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from django.db.models import Q

from jobs.contract.facts import HostFacts
from jobs.contract.rules import resolve_device_kind
from jobs.contract.spec import DeviceKind, TrainSpec
from jobs.models import Device, Job, Queue, Study

Types = Mapping[str, Collection[str]]  # names of devices by their kind; under "auto" the kinds that hosts choose


def types_in(queues: Iterable[Queue]) -> dict[int, Types]:
    """The types of device that each queue's workers have, online or not, by the queue's id."""
    known = {"workers__forgotten_at": None, "workers__devices__is_present": True}
    there = Queue.objects.filter(pk__in=[queue.pk for queue in queues], **known).order_by()
    fields = ("pk", "workers", "workers__devices__kind", "workers__devices__name")
    types: dict[int, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    kinds: dict[tuple[int, int], set[str]] = defaultdict(set)
    for pk, worker, kind, name in there.values_list(*fields):
        types[pk][kind].add(name)
        kinds[pk, worker].add(kind)
    for (pk, _worker), own in kinds.items():
        types[pk]["auto"].add(DeviceKind.CUDA if DeviceKind.CUDA in own else DeviceKind.CPU)
    return dict(types)


def types_for(job: Job) -> Types:
    """The types of device that a job's queue has; none are read where no study keeps it to one."""
    if job.study is None or not job.study.device_names:
        return {}
    return types_in([job.queue]).get(job.queue_id, {})


def kept_to(kind: str, name: str) -> dict[str, str]:
    """A type of device as a study or a search keeps to it, also in runs that leave the kind to the host."""
    return {kind: name, "auto": kind}


def type_that_ran(job: Job) -> dict[str, str]:
    """The type of device that a job ran on, to be kept to; empty where it never started, or had several."""
    devices = (job.last_attempt.hardware or {}).get("devices", []) if job.last_attempt else []
    types = {(device["kind"], device["name"]) for device in devices}
    return kept_to(*types.pop()) if len(types) == 1 else {}


def type_named(name: str, queue: Queue) -> dict[str, str]:
    """The type of device of that name in a queue, to be kept to; empty where it has none."""
    kinds = [kind for kind, names in types_in([queue]).get(queue.pk, {}).items() if name in names and kind != "auto"]
    return kept_to(kinds[0], name) if kinds else {}


def suits(job: Job, facts: HostFacts, types: Types) -> bool:
    """Whether a host has the type of device that the job must run on, as far as its queue has that type at all."""
    names, kind = job.study.device_names if job.study else {}, resolve_device_kind(job.train_spec, facts)
    is_auto = job.train_spec.device is DeviceKind.AUTO
    if is_auto and names.get("auto", kind) != kind and names["auto"] in types.get("auto", ()):
        return False
    is_there = names.get(kind) in types.get(kind, ())
    return not is_there or any(device.name == names[kind] for device in facts.devices_of(kind))


def of_its_type(job: Job, devices: Sequence[Device]) -> list[Device]:
    """What a job may get of one host's devices: of a kind that is there in several types, only its study's."""
    names = job.study.device_names if job.study else {}
    here = {(device.kind, device.name) for device in devices}
    return [
        device
        for device in devices
        if (device.kind, names.get(device.kind)) not in here or device.name == names[device.kind]
    ]


def is_for_others(facts: HostFacts, in_service: Sequence[Device], queues: Iterable[Queue]) -> Q:
    """The jobs of studies that must run on another type of device than a host has, or has free where it has several."""
    auto = resolve_device_kind(TrainSpec(device=DeviceKind.AUTO), facts)
    passed = Q(pk__in=[])
    for queue, types in types_in(queues).items():
        for kind in set(types["auto"]) - {auto}:
            studies = Study.objects.filter(device_names__auto=kind)
            passed |= Q(queue=queue, device_kind=DeviceKind.AUTO, study__in=studies)
        for kind in set(types) - {"auto"}:
            own = [device for device in in_service if device.kind == kind]
            asked_as = [kind, DeviceKind.AUTO] if kind == auto else [kind]
            for name, most in _most_devices(own, types[kind]).items():
                studies = Study.objects.filter(**{f"device_names__{kind}": name})
                passed |= Q(queue=queue, device_kind__in=asked_as, num_devices__gt=most, study__in=studies)
    return passed


def _most_devices(own: Sequence[Device], names: Iterable[str]) -> dict[str, int]:
    """How many devices of each type a job may have on a host at most: none of one that is not there.

    Left out is the type of a host that has no other: there all that is free counts, as for any job.
    """
    here = {device.name for device in own}
    free = Counter(device.name for device in own if device.attempt_id is None)
    return {name: free[name] for name in names if here != {name}}
