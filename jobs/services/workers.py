"""A worker host says what it is, that it lives, and good-bye; staff drain it, resume it, or forget a dead one."""

from collections.abc import Mapping
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Greatest, Now
from django.utils import timezone
from django.utils.translation import gettext

from jobs.contract.catalog import Catalog
from jobs.contract.facts import DeviceSample, HostFacts
from jobs.models import Attempt, AuditAction, Device, DeviceUse, Queue, User, Worker
from jobs.selectors.hosts import online_workers
from jobs.services.audit import note
from jobs.services.errors import NotPossible
from jobs.services.wake import wake_on_commit

_USES_KEPT = timedelta(days=8)


def register_worker(host_id: UUID, pid: int, queue_names: list[str], facts: HostFacts, catalog: Catalog) -> Worker:
    """The worker's row, made or brought up to date, with its queues and devices. Leases and drains are kept."""
    with transaction.atomic():
        worker, _ = Worker.objects.update_or_create(
            host_id=host_id,
            defaults={
                "hostname": facts.hostname,
                "pid": pid,
                "version": facts.engine_version,
                "facts": facts.model_dump(mode="json"),
                "catalog": catalog.model_dump(mode="json"),
                "started_at": Now(),
                "heartbeat_at": Now(),
                "stopped_at": None,
                "forgotten_at": None,
            },
        )
        worker.queues.set([Queue.objects.get_or_create(name=name)[0] for name in queue_names])
        _register_devices(worker, facts)
    return worker


def _register_devices(worker: Worker, facts: HostFacts) -> None:
    worker.devices.update(is_present=False)
    for device in facts.devices:
        Device.objects.update_or_create(
            worker=worker,
            kind=device.kind,
            index=device.index,
            defaults={
                "uuid": device.uuid,
                "name": device.name,
                "memory_bytes": device.memory_bytes,
                "compute_capability": ".".join(map(str, device.compute_capability or ())),
                "is_present": True,
            },
        )


def store_ceilings(worker_id: int, measured: HostFacts) -> None:
    """Keep what a worker's devices were measured to reach, beside what else is known of them."""
    reached = {(device.kind, device.index): device.ceilings for device in measured.devices}
    with transaction.atomic():
        worker = Worker.objects.select_for_update().get(pk=worker_id)
        known = worker.host_facts
        devices = [
            device.model_copy(update={"ceilings": reached.get((device.kind, device.index))}) for device in known.devices
        ]
        worker.facts = known.model_copy(update={"devices": devices}).model_dump(mode="json")
        worker.save(update_fields=["facts"])


def beat(worker_id: int) -> None:
    """The worker lives."""
    Worker.objects.filter(pk=worker_id).update(heartbeat_at=Now(), stopped_at=None)


def record_samples(samples: Mapping[int, DeviceSample]) -> None:
    """What a host read of its devices just now, by their ids: kept as the last sample, and summed up for charts."""
    now = timezone.now()
    began_at = now.replace(minute=now.minute // 5 * 5, second=0, microsecond=0)
    for device_id, sample in samples.items():
        Device.objects.filter(pk=device_id).update(sample=sample.model_dump(exclude_none=True), sampled_at=now)
        if sample.utilization_percent is not None:
            use, _ = DeviceUse.objects.get_or_create(device_id=device_id, began_at=began_at)
            DeviceUse.objects.filter(pk=use.pk).update(
                num_samples=F("num_samples") + 1,
                utilization_sum_percent=F("utilization_sum_percent") + sample.utilization_percent,
                most_memory_bytes=Greatest("most_memory_bytes", sample.memory_used_bytes or 0),
            )


def drop_old_uses() -> None:
    """Forget what no chart shows any more."""
    DeviceUse.objects.filter(began_at__lt=timezone.now() - _USES_KEPT).delete()


def say_goodbye(worker_id: int) -> None:
    """The worker stops on purpose."""
    Worker.objects.filter(pk=worker_id).update(stopped_at=Now())


def drain_worker(worker: Worker, by: User, reason: str = "") -> None:
    """Let the host take no new jobs; what runs on it goes on. A second time changes nothing."""
    with transaction.atomic():
        if Worker.objects.filter(pk=worker.pk, is_draining=False).update(is_draining=True):
            note(by, AuditAction.DRAIN, worker=worker, reason=reason)
    worker.refresh_from_db()


def undrain_worker(worker: Worker, by: User, reason: str = "") -> None:
    """Let the host take jobs again."""
    with transaction.atomic():
        if Worker.objects.filter(pk=worker.pk, is_draining=True).update(is_draining=False):
            note(by, AuditAction.UNDRAIN, worker=worker, reason=reason)
            for queue in worker.queues.all():
                wake_on_commit(queue.name)
    worker.refresh_from_db()


def forget_worker(worker: Worker, by: User, reason: str = "") -> None:
    """Take a dead host off the pages and free its devices; it comes back by itself when it starts again.

    Raises `NotPossible` while the host is heard from, or while a job that it took has not been given up yet.
    """
    with transaction.atomic():
        worker = Worker.objects.select_for_update().get(pk=worker.pk)
        if online_workers().filter(pk=worker.pk).exists():
            raise NotPossible(gettext("%(host)s is online. Drain it and stop it first.") % {"host": worker.hostname})
        live = Attempt.objects.filter(devices__worker=worker, outcome=None).values_list("job_id", flat=True)
        if live:
            raise NotPossible(
                gettext("Job %(job)s still counts as running on %(host)s. Wait until its lease has run out.")
                % {"job": live[0], "host": worker.hostname}
            )
        worker.devices.update(attempt=None)
        if Worker.objects.filter(pk=worker.pk, forgotten_at=None).update(forgotten_at=Now()):
            note(by, AuditAction.FORGET, worker=worker, reason=reason)
