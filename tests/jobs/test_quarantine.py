import pytest

from jobs.models import Device
from jobs.services.claim import claim_next
from jobs.services.devices import quarantine_device, release_device
from jobs.services.errors import NotPossible
from jobs.services.finish import lose_attempt
from tests.jobs.factories import make_job, make_worker, start

pytestmark = pytest.mark.django_db


def test_nothing_starts_on_a_device_in_quarantine_until_it_is_released() -> None:
    worker = make_worker()
    make_job()
    device = worker.devices.get()
    quarantine_device(device, "  process 12 (python) could not be ended ")
    assert claim_next(worker.pk) is None
    assert device.quarantine_reason == "process 12 (python) could not be ended"
    release_device(device)
    assert claim_next(worker.pk) is not None


def test_a_device_of_a_host_that_went_silent_is_free_once_staff_release_it() -> None:
    worker = make_worker()
    attempt = start(make_job(), worker)
    lose_attempt(attempt, "silent", release_devices=False)
    make_job()
    assert claim_next(worker.pk) is None
    release_device(worker.devices.get())
    assert claim_next(worker.pk) is not None


def test_a_device_on_which_a_job_runs_is_not_released() -> None:
    attempt = start(make_job())
    with pytest.raises(NotPossible):
        release_device(Device.objects.get(attempt=attempt))
    assert Device.objects.filter(attempt=attempt).exists()
