"""What a host's devices reach is measured once, by an engine process of its own, and never beside a job."""

import json
import sys
import threading
import time
from pathlib import Path

import pytest
from django.conf import settings

from jobs.contract.facts import Ceilings, HostFacts
from jobs.models import Attempt, Worker
from jobs.services.claim import claim_next
from jobs.services.workers import store_ceilings
from tests.jobs.factories import host_facts, make_job, make_worker, start
from workers import ceilings
from workers.ceilings import CeilingWatch, is_idle
from workers.host import Host

pytestmark = pytest.mark.django_db

REACHED = Ceilings(matmul_flops_per_s={"fp32": 2e11}, copy_bytes_per_s=1e10)


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "VAR", tmp_path)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A stand-in for the engine's measurement; each one adds a line to this file, and lasts as long as `slow` says."""
    facts = with_ceilings(host_facts())
    script = tmp_path / "describe.py"
    script.write_text(
        "import pathlib, sys, time\n"
        "folder = pathlib.Path(__file__).parent\n"
        "with (folder / 'runs').open('a') as runs: print(*sys.argv[1:], file=runs)\n"
        "while (folder / 'slow').exists(): time.sleep(0.01)\n"
        f"print({json.dumps({'facts': facts.model_dump(mode='json')})!r})\n"
    )
    monkeypatch.setattr(ceilings, "engine_command", lambda: [sys.executable, str(script)])
    return tmp_path / "runs"


def with_ceilings(facts: HostFacts, reached: Ceilings = REACHED) -> HostFacts:
    devices = [device.model_copy(update={"ceilings": reached}) for device in facts.devices]
    return facts.model_copy(update={"devices": devices})


def stored(worker: Worker) -> list[Ceilings | None]:
    worker.refresh_from_db()
    return [device.ceilings for device in worker.host_facts.devices]


def num_runs(runs: Path) -> int:
    return len(runs.read_text().splitlines()) if runs.exists() else 0


def test_an_idle_host_measures_once_and_keeps_the_rest_of_its_facts(runs: Path) -> None:
    worker = make_worker()
    before = worker.host_facts
    watch = CeilingWatch()
    watch.look(worker.pk)
    watch.look(worker.pk)
    assert runs.read_text() == "describe --ceilings\n"
    assert stored(worker) == [REACHED]
    assert worker.host_facts == with_ceilings(before)
    assert not watch.is_measuring


def test_a_worker_that_starts_again_reads_what_was_measured(runs: Path) -> None:
    CeilingWatch().look(make_worker().pk)
    again = make_worker()  # its registration knows no ceilings
    assert stored(again) == [None]
    CeilingWatch().look(again.pk)
    assert stored(again) == [REACHED]
    assert num_runs(runs) == 1


def test_another_torch_is_measured_anew(runs: Path) -> None:
    worker = make_worker()
    CeilingWatch().look(worker.pk)
    worker.refresh_from_db()
    worker.facts = host_facts().model_copy(update={"torch_version": "2.14.0"}).model_dump(mode="json")
    worker.save()
    CeilingWatch().look(worker.pk)
    assert num_runs(runs) == 2


def test_a_device_that_was_not_there_is_measured(runs: Path) -> None:
    CeilingWatch().look(make_worker().pk)
    CeilingWatch().look(make_worker(num_gpus=1).pk)
    assert num_runs(runs) == 2


def test_a_file_that_is_none_is_measured_anew(runs: Path) -> None:
    worker = make_worker()
    CeilingWatch().look(worker.pk)
    (kept,) = (settings.VAR / "ceilings").iterdir()
    kept.write_text("{")
    make_worker()
    CeilingWatch().look(worker.pk)
    assert (num_runs(runs), stored(worker)) == (2, [REACHED])


def test_nothing_is_measured_beside_a_job_or_before_one(runs: Path) -> None:
    worker, job = make_worker(), make_job()
    assert not is_idle(worker.pk)  # the job waits for it
    CeilingWatch().look(worker.pk)
    start(job, worker)
    assert not is_idle(worker.pk)
    CeilingWatch().look(worker.pk)
    assert (num_runs(runs), stored(worker)) == (0, [None])


def test_nothing_is_measured_on_a_gpu_that_others_use(runs: Path) -> None:
    worker = make_worker(num_gpus=1)
    worker.devices.filter(kind="cuda").update(foreign_use="python (7) of somebody")
    assert not is_idle(worker.pk)


@pytest.mark.django_db(transaction=True)
def test_a_job_that_comes_ends_the_measurement_and_is_claimed_at_once(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, host = make_worker(), Host()
    host.worker_id = worker.pk
    (runs.parent / "slow").touch()
    monkeypatch.setattr("workers.host.start_supervisor", lambda attempt, _spare: attempt)
    measuring = threading.Thread(target=host._use_idle_time)
    measuring.start()
    wait_for(lambda: num_runs(runs) == 1)
    make_job()
    taken = host.take_one()
    measuring.join(10)
    assert isinstance(taken, Attempt)
    assert not measuring.is_alive()
    assert stored(worker) == [None]
    assert not host._ceilings.is_measuring


@pytest.mark.django_db(transaction=True)
def test_a_job_claimed_while_the_measurement_starts_ends_it_too(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = make_worker()
    (runs.parent / "slow").touch()
    answers = iter([True])

    def idle_until_a_job_is_claimed(worker_id: int) -> bool:
        if next(answers, None):
            return True
        make_job()
        claim_next(worker.pk)
        return is_idle(worker_id)

    monkeypatch.setattr(ceilings, "is_idle", idle_until_a_job_is_claimed)
    CeilingWatch().look(worker.pk)
    assert stored(worker) == [None]


def test_an_engine_that_fails_leaves_them_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = make_worker()
    for code in ("raise SystemExit(1)", "print('nonsense')"):
        monkeypatch.setattr(ceilings, "engine_command", lambda code=code: [sys.executable, "-c", code])
        CeilingWatch().look(worker.pk)
        assert stored(worker) == [None]


def test_the_real_engine_measures_this_host(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = make_worker()
    CeilingWatch().look(worker.pk)
    (reached, *_gpus) = stored(worker)
    assert reached is not None
    assert reached.matmul_flops_per_s["fp32"] > 1e8
    assert reached.copy_bytes_per_s > 1e8


def test_a_device_that_is_gone_leaves_the_others_theirs() -> None:
    worker = make_worker(num_gpus=1)
    store_ceilings(worker.pk, with_ceilings(host_facts()))
    assert stored(worker) == [REACHED, None]


def wait_for(probe: object) -> None:
    deadline = time.monotonic() + 20
    while not probe():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.01)
