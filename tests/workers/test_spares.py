"""When a worker keeps a spare, who gets it, and that it ends when nobody needs it. The processes only sleep here."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from jobs.contract.states import Outcome
from jobs.models import Attempt
from jobs.services.finish import finish_attempt
from tests.jobs.factories import make_job, make_worker, start
from tests.system.pitwall import wait_until
from workers import spares
from workers.engine.spare import Assignment
from workers.engine_process import _take_on
from workers.spares import Spares
from workers.supervisor_process import SupervisorProcess

pytestmark = pytest.mark.django_db

READ_A_LINE = "import sys; line = sys.stdin.readline(); sys.exit(7 if line == '42\\n' else 0)"


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[SupervisorProcess]]:
    """The supervisors that were started; each ends at its first line."""
    started: list[SupervisorProcess] = []

    class Started(SupervisorProcess):
        def __init__(self, *, is_spare: bool = False) -> None:
            assert is_spare
            self.process = subprocess.Popen([sys.executable, "-c", READ_A_LINE], stdin=subprocess.PIPE)
            started.append(self)

    monkeypatch.setattr(spares, "SupervisorProcess", Started)
    yield started
    for supervisor in started:
        supervisor.process.kill()
        supervisor.process.communicate()


def test_an_idle_host_keeps_as_many_as_it_is_asked_for(started: list[SupervisorProcess]) -> None:
    worker, kept = make_worker(), Spares(2)
    for _look in range(4):
        kept.keep(worker.pk)
    assert len(started) == 2


def test_none_is_started_where_none_is_wanted(started: list[SupervisorProcess]) -> None:
    Spares(0).keep(make_worker().pk)
    assert not started


def test_none_is_started_beside_a_job_or_before_one(started: list[SupervisorProcess]) -> None:
    worker, job, kept = make_worker(), make_job(), Spares(1)
    kept.keep(worker.pk)
    attempt = start(job, worker)
    kept.keep(worker.pk)
    assert not started
    finish_attempt(attempt, Outcome.SUCCEEDED)
    kept.keep(worker.pk)
    assert len(started) == 1


def test_each_is_given_away_once_and_told_its_attempt(started: list[SupervisorProcess]) -> None:
    kept = Spares(1)
    kept.keep(make_worker().pk)
    spare = kept.take()
    assert spare is started[0]
    assert kept.take() is None
    spare.hand_over(Attempt(pk=42))
    assert spare.process.wait(30) == 7


def test_one_that_has_died_is_not_given_away_and_is_replaced_later(started: list[SupervisorProcess]) -> None:
    worker, kept = make_worker(), Spares(1)
    look_s = kept.keep(worker.pk)
    started[0].process.kill()
    started[0].process.wait()
    assert kept.take() is None
    assert not started[0].hand_over(Attempt(pk=42))
    assert kept.keep(worker.pk) > look_s, "what has died may do so again"
    assert len(started) == 1
    kept.keep(worker.pk)
    assert len(started) == 2


def test_a_host_that_stops_lets_its_spares_end_and_starts_no_more(started: list[SupervisorProcess]) -> None:
    worker, kept = make_worker(), Spares(1)
    kept.keep(worker.pk)
    kept.dismiss()
    assert started[0].process.wait(30) == 0
    kept.keep(worker.pk)
    assert len(started) == 1
    assert kept.take() is None


def test_one_that_came_too_late_for_a_job_does_not_get_warm_beside_it(
    started: list[SupervisorProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([True, False])
    monkeypatch.setattr(spares, "is_idle", lambda _worker_id: next(answers))
    kept = Spares(1)
    kept.keep(make_worker().pk)
    assert kept.take() is None
    assert started[0].process.wait(30) == 0


# The main thread goes and another one stays: what a killed engine with many threads is for a moment.
GOES_BY_HALF = """
import ctypes, platform, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)
"""


def test_an_engine_that_is_about_to_be_gone_is_given_no_run(tmp_path: Path) -> None:
    engine = subprocess.Popen([sys.executable, "-c", GOES_BY_HALF], stdin=subprocess.PIPE)
    try:
        wait_until(lambda: psutil.Process(engine.pid).status() == psutil.STATUS_ZOMBIE, what="its main thread's end")
        assert engine.poll() is None
        assert not _take_on(engine, Assignment(arguments=[], environment={}, log=tmp_path / "log"))
    finally:
        engine.kill()
        engine.wait()
