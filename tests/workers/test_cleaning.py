"""What an attempt leaves on its host: real processes, ended and waited for before a device is free."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import psutil
import pytest

from jobs.contract.states import Outcome
from jobs.models import Attempt, Device
from jobs.services.finish import lose_attempt
from jobs.services.record import record_supervisor
from jobs.timings import timings
from tests.jobs.factories import make_job, start
from workers import cleaning
from workers.cleaning import Cleaner
from workers.identity import TREE_VARIABLE

pytestmark = pytest.mark.django_db

NOBODY = 2**22 + 1  # no process has so high an id


@pytest.fixture
def attempt() -> Attempt:
    return start(make_job())


@pytest.fixture
def start_process() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []

    def start(tree_tag: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", "import time; time.sleep(600)"]
        started.append(subprocess.Popen(command, env=os.environ | {TREE_VARIABLE: tree_tag}))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def is_leased(attempt: Attempt) -> bool:
    return Device.objects.filter(attempt=attempt).exists()


def clean_until(attempt: Attempt, cleaner: Cleaner, is_over: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_over():
        assert time.monotonic() < deadline
        cleaner.clean(attempt.worker_id or 0)
        time.sleep(0.02)


def test_what_a_dead_supervisor_left_is_ended_before_its_device_is_free(
    attempt: Attempt, start_process: Callable[..., subprocess.Popen[bytes]]
) -> None:
    process = start_process("ours")
    record_supervisor(attempt, NOBODY, "ours")
    clean_until(attempt, Cleaner(), lambda: not is_leased(attempt))
    assert process.poll() is not None
    attempt.refresh_from_db()
    assert (attempt.outcome, attempt.error["message"]) == (Outcome.LOST, "The supervisor of this attempt died.")


def test_processes_of_another_supervisor_are_left_alone(
    attempt: Attempt, start_process: Callable[..., subprocess.Popen[bytes]]
) -> None:
    process = start_process("another's")
    record_supervisor(attempt, NOBODY, "ours")
    lose_attempt(attempt, "silent", release_devices=False)
    clean_until(attempt, Cleaner(), lambda: not is_leased(attempt))
    assert process.poll() is None


def test_a_supervisor_that_only_stands_still_keeps_its_processes_and_its_device(
    attempt: Attempt, start_process: Callable[..., subprocess.Popen[bytes]]
) -> None:
    """It ends its tree itself when it goes on and finds that the job is another's."""
    supervisor = start_process("ours")
    record_supervisor(attempt, supervisor.pid, "ours")
    psutil.Process(supervisor.pid).suspend()
    lose_attempt(attempt, "silent", release_devices=False)
    cleaner = Cleaner()
    for _round in range(3):
        cleaner.clean(attempt.worker_id or 0)
    assert is_leased(attempt)
    assert supervisor.poll() is None
    supervisor.kill()
    supervisor.wait()
    clean_until(attempt, cleaner, lambda: not is_leased(attempt))


def test_a_device_that_does_not_get_clean_goes_into_quarantine(
    attempt: Attempt, start_process: Callable[..., subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No process of a test survives SIGKILL, so the signal is held back."""
    monkeypatch.setattr(cleaning, "kill", lambda processes: None)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    process = start_process("ours")
    record_supervisor(attempt, NOBODY, "ours")
    lose_attempt(attempt, "silent", release_devices=False)
    cleaner = Cleaner()
    cleaner.clean(attempt.worker_id or 0)
    assert is_leased(attempt)
    now += timings().give_up_s + 1
    cleaner.clean(attempt.worker_id or 0)
    device = Device.objects.get(worker=attempt.worker_id)
    assert device.attempt_id is None
    assert device.quarantine_reason.startswith(f"Left by job {attempt.job_id} and not to be ended: python")
    assert f"({process.pid})" in device.quarantine_reason
