import pytest

from jobs.models import Device, Worker
from jobs.selectors.hosts import online_workers
from jobs.services.claim import claim_next
from jobs.services.workers import beat, say_goodbye
from tests.jobs.factories import make_job, make_worker

pytestmark = pytest.mark.django_db


def test_a_worker_comes_with_its_devices_and_queues() -> None:
    worker = make_worker(queues=["default", "gpu"], num_gpus=2)
    assert [str(queue) for queue in worker.queues.all()] == ["default", "gpu"]
    assert list(worker.devices.values_list("kind", "index")) == [("cpu", 0), ("cuda", 0), ("cuda", 1)]


def test_a_restart_keeps_row_drain_and_leases() -> None:
    worker = make_worker(num_gpus=1)
    Worker.objects.update(is_draining=True)
    make_job()
    Worker.objects.update(is_draining=False)
    attempt = claim_next(worker.pk)
    Worker.objects.update(is_draining=True)
    again = make_worker(num_gpus=1)
    again.refresh_from_db()
    assert again.pk == worker.pk
    assert again.is_draining
    assert Device.objects.get(attempt=attempt).is_present


def test_a_device_that_is_gone_is_kept_as_absent() -> None:
    make_worker(num_gpus=2)
    worker = make_worker(num_gpus=1)
    assert list(worker.devices.values_list("kind", "index", "is_present")) == [
        ("cpu", 0, True),
        ("cuda", 0, True),
        ("cuda", 1, False),
    ]


def test_good_bye_is_offline_and_a_heartbeat_is_online_again() -> None:
    worker = make_worker()
    assert online_workers().get() == worker
    say_goodbye(worker.pk)
    assert not online_workers().exists()
    beat(worker.pk)
    assert online_workers().exists()
