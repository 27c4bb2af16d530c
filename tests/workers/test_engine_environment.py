"""What an engine gets to see of its supervisor's environment: its devices, and none of the site's secrets."""

import pytest

from jobs.models import Device
from workers.engine_process import environment_for_engine


def gpu(index: int, uuid: str = "") -> Device:
    return Device(kind="cuda", index=index, uuid=uuid, name="Some GPU", memory_bytes=1)


def test_the_leased_gpus_and_no_others_are_visible_in_the_order_of_their_bus() -> None:
    environment = environment_for_engine([gpu(1, "GPU-b"), gpu(3, "GPU-d")])
    assert environment["CUDA_VISIBLE_DEVICES"] == "GPU-b,GPU-d"
    assert environment["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


def test_gpus_without_an_id_go_by_their_place() -> None:
    assert environment_for_engine([gpu(1), gpu(3)])["CUDA_VISIBLE_DEVICES"] == "1,3"


def test_a_job_on_the_cpu_sees_no_gpu() -> None:
    cpu = Device(kind="cpu", index=0, name="Some CPU", memory_bytes=1)
    assert environment_for_engine([cpu])["CUDA_VISIBLE_DEVICES"] == ""


def test_secrets_stay_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PITWALL_SECRET_KEY", "PITWALL_DATABASE_URL", "PITWALL_REDIS_URL"):
        monkeypatch.setenv(name, "hush")
    assert "hush" not in environment_for_engine([]).values()
