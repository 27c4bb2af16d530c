"""A GPU on which somebody else computes is left alone, and its row says whose it is."""

import os

import pytest

from jobs.models import Device, Worker
from jobs.services.claim import claim_next
from tests.jobs.factories import make_job, make_spec, make_worker
from workers import gpus
from workers.host import Host

pytestmark = pytest.mark.django_db


@pytest.fixture
def worker() -> Worker:
    worker = make_worker(num_gpus=2)
    for device in worker.devices.filter(kind="cuda"):
        Device.objects.filter(pk=device.pk).update(uuid=f"GPU-{device.index}")
    return worker


@pytest.fixture
def on_gpus(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[int]]:
    """The processes on each GPU, in place of the driver's answer."""
    processes: dict[str, list[int]] = {}
    monkeypatch.setattr(gpus, "list_processes", lambda uuid: processes.get(uuid, []))
    monkeypatch.setattr(gpus, "_SETTLE_S", 0.2)
    return processes


def look(worker: Worker) -> list[str]:
    host = Host()
    host.worker_id = worker.pk
    host._look_at_gpus()
    return list(worker.devices.filter(kind="cuda").order_by("index").values_list("foreign_use", flat=True))


def test_its_row_names_process_and_person(worker: Worker, on_gpus: dict[str, list[int]]) -> None:
    on_gpus["GPU-1"] = [os.getpid()]
    free, used = look(worker)
    assert free == ""
    assert f"({os.getpid()}) of " in used


def test_a_process_that_this_host_cannot_see_is_named_by_its_number(
    worker: Worker, on_gpus: dict[str, list[int]]
) -> None:
    on_gpus["GPU-0"] = [2**22 + 1]
    assert look(worker)[0] == f"process {2**22 + 1}"


def test_it_is_not_leased_until_they_are_gone(worker: Worker, on_gpus: dict[str, list[int]]) -> None:
    on_gpus["GPU-0"] = [os.getpid()]
    make_job(spec=make_spec(device="cuda", num_devices=2, parallelism="ddp"))
    look(worker)
    assert claim_next(worker.pk) is None
    on_gpus.clear()
    assert look(worker) == ["", ""]
    assert claim_next(worker.pk) is not None


def test_a_leased_gpu_is_not_looked_at(worker: Worker, on_gpus: dict[str, list[int]]) -> None:
    """What computes there is ours, or the attempt's own telemetry tells of it."""
    make_job(spec=make_spec(device="cuda"))
    attempt = claim_next(worker.pk)
    assert attempt is not None
    on_gpus["GPU-0"] = [os.getpid()]
    assert look(worker) == ["", ""]


def test_a_process_that_has_just_ended_is_given_time_to_go(
    worker: Worker, on_gpus: dict[str, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([[os.getpid()], [os.getpid()], []])
    monkeypatch.setattr(gpus, "list_processes", lambda uuid: next(answers, []) if uuid == "GPU-0" else [])
    assert look(worker) == ["", ""]
