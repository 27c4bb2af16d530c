"""How a supervisor sees the end of an engine. Its loop runs here in the test's process, so it may end no descendant."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from jobs.contract.states import Outcome
from jobs.models import Attempt, Device
from jobs.services.cancel import request_cancel
from tests.jobs.factories import make_job, start
from workers import oom, supervisor
from workers.supervisor import Supervisor

pytestmark = pytest.mark.django_db


@pytest.fixture
def attempt() -> Attempt:
    attempt = start(make_job())
    return Attempt.objects.select_related("job").get(pk=attempt.pk)


@pytest.fixture
def run(attempt: Attempt, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Attempt]:
    """Supervise an engine that runs this code, or that cannot be started; survivors are what SIGKILL did not end."""

    def run(code: str | None, survivors: list[psutil.Process] | None = None) -> Attempt:
        def start_engine(*_arguments: object) -> subprocess.Popen[bytes]:
            if code is None:
                raise OSError(28, "No space left on device")
            return subprocess.Popen([sys.executable, "-c", code])

        monkeypatch.setattr(supervisor, "start_engine", start_engine)
        monkeypatch.setattr(supervisor, "end_descendants", lambda *_times: survivors or [])
        monkeypatch.setattr(supervisor, "become_subreaper", lambda: None)
        monkeypatch.setattr(supervisor.signal, "signal", lambda *_arguments: None)
        Supervisor(attempt).run()
        attempt.refresh_from_db()
        return attempt

    return run


def test_an_engine_that_cannot_be_started_is_a_failure_in_one_sentence(run: Callable[..., Attempt]) -> None:
    ended = run(None)
    assert ended.outcome == Outcome.FAILED
    assert ended.error["message"] == "The engine could not be started: [Errno 28] No space left on device."
    assert not Device.objects.exclude(attempt=None).exists()


def test_a_device_that_a_process_does_not_leave_goes_into_quarantine(
    attempt: Attempt, run: Callable[..., Attempt]
) -> None:
    request_cancel(attempt.job, attempt.job.owner)
    ended = run("import time; time.sleep(0.3)", survivors=[psutil.Process()])
    device = Device.objects.get()
    assert ended.outcome == Outcome.CANCELLED
    assert device.attempt_id is None
    assert device.quarantine_reason.startswith(f"Left by job {attempt.job_id} and not to be ended: ")
    assert f"({psutil.Process().pid})" in device.quarantine_reason


@pytest.mark.parametrize(("num_kills", "outcome"), [(1, Outcome.OUT_OF_MEMORY), (0, Outcome.FAILED)])
def test_a_kill_while_the_kernel_ran_out_of_memory_is_out_of_memory(
    run: Callable[..., Attempt], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, num_kills: int, outcome: Outcome
) -> None:
    counter = tmp_path / "memory.events"
    counter.write_text("oom_kill 0\n")
    monkeypatch.setattr(oom, "_COUNTERS", (counter,))
    count = f"import os, pathlib; pathlib.Path({str(counter)!r}).write_text('oom_kill {num_kills}')"
    assert run(f"{count}; os.kill(os.getpid(), 9)").outcome == outcome
