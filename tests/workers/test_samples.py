"""What a host reads of its devices, and where it goes."""

import pytest

from jobs.models import Device, DeviceUse
from tests.jobs.factories import make_worker
from workers import samples
from workers.engine.nvml import NvmlMissing
from workers.host import Host

pytestmark = pytest.mark.django_db


class FakeGpu:
    """A GPU that tells all but its power."""

    def __init__(self, uuid: str) -> None:
        if uuid == "GPU-gone":
            raise NvmlMissing("no such GPU")

    def read(self) -> dict[str, float]:
        return {"gpu_utilization_percent": 87.0, "gpu_memory_used_bytes": 5e9, "gpu_temperature_c": 61.0}


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    samples._open_gpu.cache_clear()
    monkeypatch.setattr(samples, "Gpu", FakeGpu)
    worker = make_worker(num_gpus=2)
    for index, uuid in enumerate(("GPU-here", "GPU-gone")):
        worker.devices.filter(kind="cuda", index=index).update(uuid=uuid)
    host = Host()
    host.worker_id = worker.pk
    return host


def test_the_host_stores_what_its_devices_tell(host: Host) -> None:
    host._sample()
    cpu, here, gone = Device.objects.order_by("kind", "index")
    assert cpu.sample["memory_used_bytes"] > 0
    assert 0 <= cpu.sample["utilization_percent"] <= 100
    assert here.sample == {"utilization_percent": 87.0, "memory_used_bytes": 5_000_000_000, "temperature_c": 61.0}
    assert gone.sample == {}
    assert gone.sampled_at is None
    assert {use.device.kind for use in DeviceUse.objects.all()} == {"cpu", "cuda"}


def test_a_device_that_is_not_there_any_more_is_not_asked(host: Host) -> None:
    Device.objects.filter(kind="cuda").update(is_present=False)
    host._sample()
    assert not Device.objects.filter(kind="cuda").exclude(sample={}).exists()
