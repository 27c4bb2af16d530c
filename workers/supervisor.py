"""One attempt: launch the engine, store what it says, keep the lease, obey a cancel, leave nothing behind.

`python -m workers.supervisor`, started by the Celery worker in a session of its own, so that it outlives that worker.
It is told its attempt's id on standard input; with the argument `spare` it has an engine warm by then. It loads Django
but never torch. It writes only while its fence is the job's fence; on the first refusal it ends its tree and goes.
"""

import contextlib
import logging
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TypeVar

import django
from django.db import InterfaceError, OperationalError, connection

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    django.setup()

from jobs.attempt_files import AttemptFiles, tail
from jobs.contract.errors import TimedOut
from jobs.contract.events import ErrorInfo, Finished
from jobs.contract.states import Outcome
from jobs.logs import about
from jobs.models import Attempt, Device, Job
from jobs.services import finish, record
from jobs.services.errors import StaleFence
from jobs.timings import timings
from workers.delivery import Delivery
from workers.engine_process import LogKeeper, start_engine, start_spare_engine
from workers.identity import own_tree_tag
from workers.nodes import Nodes
from workers.oom import OomWatch
from workers.processes import become_subreaper, end_descendants, in_words
from workers.resume import find_resumption
from workers.supervisor_process import SPARE

logger = logging.getLogger(__name__)

TICK_S = 0.05
STOP_GRACE_S = 1.0  # a host that stops leaves its engines less time than a cancel does

_ENDS_OF_ITS_OWN = (Outcome.SUCCEEDED, Outcome.TIMED_OUT)  # what an engine says whoever told it to stop meanwhile

STOPPED = "The worker was stopped while the job ran."

DATABASE_AWAY = (OperationalError, InterfaceError)

T = TypeVar("T")


class Supervisor:
    """Owns one attempt until it has ended, or until its fence says that it is somebody else's."""

    def __init__(self, attempt: Attempt, spare_engine: subprocess.Popen[bytes] | None = None) -> None:
        self.attempt = attempt
        self.files = AttemptFiles(attempt.pk)
        self.delivery = Delivery(attempt, self.files.events)
        self.log = LogKeeper(self.files.log)
        self.oom = OomWatch()
        self.nodes = Nodes(attempt)
        self.cancelled = False
        self.stopping = False
        self.timed_out = False
        self._left_behind = ""
        self._spare_engine = spare_engine
        self._time_limit_s = attempt.job.train_spec.time_limit_s
        self._must_end_at = math.inf  # by `time.monotonic`
        self._nodes_are_over = False
        self._due = {self._heartbeat: 0.0, self._look_for_cancel: 0.0}
        self._database_retry_at = 0.0

    def run(self) -> None:
        """The whole life of the attempt."""
        devices, resume, place = until_database_answers(self._begin)
        signal.signal(signal.SIGTERM, self._stop)
        become_subreaper()
        try:
            engine = start_engine(self.files, devices, resume, place, self._spare_engine)
        except OSError as error:
            message = f"The engine could not be started: {error}."
            until_database_answers(self._stop_nodes)
            until_database_answers(lambda: self._finish(Outcome.FAILED, ErrorInfo(type="CannotStart", message=message)))
            return
        if self._time_limit_s is not None:  # the engine ends itself at its limit; past the grace it must be stuck
            self._must_end_at = time.monotonic() + self._time_limit_s + timings().kill_grace_s
        try:
            self._watch(engine)
        except StaleFence:
            logger.warning("%s is no longer the owner (fence %s); ending its tree", self.attempt, self.attempt.fence)
        finally:
            end_descendants(0, timings().give_up_s)

    def _begin(self) -> tuple[list[Device], Path | None, list[str]]:
        """Note who supervises and where the attempt goes on, and call its other nodes.

        Returns the devices here, the checkpoint that it goes on from, and the engine's arguments about its place.
        """
        record.record_supervisor(self.attempt, os.getpid(), own_tree_tag())
        resumption = find_resumption(self.attempt)
        if resumption:
            record.record_resumed(self.attempt, resumption.origin, resumption.step)
        devices = self.attempt.devices.filter(worker=self.attempt.worker_id)
        return list(devices), resumption.path if resumption else None, self.nodes.call()

    def _watch(self, engine: subprocess.Popen[bytes]) -> None:
        while engine.poll() is None and not self._is_over:
            self._tick()
            time.sleep(TICK_S)
        left = end_descendants(self._grace_s, timings().give_up_s)
        if left:
            self._left_behind = f"Left by job {self.attempt.job_id} and not to be ended: {in_words(left)}"
        self.log.shorten()  # what was printed since the last look
        until_database_answers(lambda: self._end(engine.poll()))

    @property
    def _is_over(self) -> bool:
        is_interrupted = self.cancelled or self.stopping or self.timed_out or self._nodes_are_over
        return is_interrupted or self.delivery.finished is not None

    @property
    def _grace_s(self) -> float:
        """After its last word an engine has nothing left to lose: unloading torch would only cost a second."""
        if self.delivery.finished:
            return 0.0
        return STOP_GRACE_S if self.stopping else timings().kill_grace_s

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.stopping = True

    def _tick(self) -> None:
        """Take new events and do what is due; an unreachable database only postpones it."""
        now = time.monotonic()
        self.timed_out = now >= self._must_end_at
        self.log.shorten()
        if now < self._database_retry_at:
            self.delivery.shed()
            return
        try:
            self._do_what_is_due()  # first: after an absence of the database the heartbeat decides who owns the job
            self.delivery.take()
            self.delivery.deliver()
        except DATABASE_AWAY as error:
            logger.warning("the database cannot be reached, training goes on: %s", error)
            connection.close()
            self._database_retry_at = time.monotonic() + timings().retry_s

    def _do_what_is_due(self) -> None:
        for action, due_at in self._due.items():
            if time.monotonic() >= due_at:
                self._due[action] = time.monotonic() + action()

    def _heartbeat(self) -> float:
        self._renew_lease()
        return timings().heartbeat_s

    def _renew_lease(self) -> None:
        record.heartbeat(self.attempt)
        self.nodes.note_heartbeat()

    def _look_for_cancel(self) -> float:
        job = Job.objects.only("fence", "cancel_requested_at").get(pk=self.attempt.job_id)
        if job.fence != self.attempt.fence:
            raise StaleFence(str(self.attempt))
        self.cancelled = job.cancel_requested_at is not None
        self._nodes_are_over = self.nodes.are_over
        return timings().cancel_poll_s

    def _end(self, exit_code: int | None) -> None:
        """Deliver what is left and write the end. The lease is kept meanwhile: a full spool takes its time."""
        while self.delivery.take():
            self._renew_lease()
            self.delivery.deliver(flush=True)
        self._stop_nodes()
        self._write_end(exit_code)

    def _stop_nodes(self) -> None:
        """No wait where this host stops: the others see the attempt's end, and free their devices themselves."""
        self.nodes.stop(self._renew_lease, give_up=lambda: self.stopping)

    def _write_end(self, exit_code: int | None) -> None:
        finished = self.delivery.finished
        interrupted = self.cancelled or self.stopping or self.timed_out
        if not interrupted and not (finished and finished.outcome in _ENDS_OF_ITS_OWN):
            if loss := self.nodes.find_loss():
                finish.lose_attempt(self.attempt, loss, release_devices=True, left_behind=self._left_behind)
                return
            if explained := self.nodes.explain(finished):
                self._finish(*explained)
                return
        if finished and (finished.outcome in _ENDS_OF_ITS_OWN or not interrupted):
            self._finish(self._meaning_of(finished), finished.error)
        elif self.cancelled:
            self._finish(Outcome.CANCELLED)
        elif self.stopping:
            finish.lose_attempt(self.attempt, STOPPED, release_devices=True, left_behind=self._left_behind)
        elif self.timed_out and self._time_limit_s is not None:
            self._finish(Outcome.TIMED_OUT, _out_of_time(self._time_limit_s, tail(self.files.log)))
        elif exit_code == -signal.SIGKILL and self.oom.has_killed:
            self._finish(Outcome.OUT_OF_MEMORY, out_of_host_memory(tail(self.files.log)))
        else:
            self._finish(Outcome.FAILED, death_of_engine(exit_code, tail(self.files.log)))

    def _meaning_of(self, finished: Finished) -> Outcome:
        """The outcome that the engine told, in the light of what it could not know."""
        if finished.outcome is Outcome.CANCELLED:
            return Outcome.FAILED  # it was told to stop by nobody here, so it did not do what it was asked for
        if finished.error and signal.SIGKILL.name in finished.error.message and self.oom.has_killed:
            return Outcome.OUT_OF_MEMORY
        return finished.outcome

    def _finish(self, outcome: Outcome, error: ErrorInfo | None = None) -> None:
        summary = self.delivery.finished.summary if self.delivery.finished else None
        finish.finish_attempt(self.attempt, outcome, summary, error, left_behind=self._left_behind)


def until_database_answers(action: Callable[[], T]) -> T:
    """What the action returns, for as long as it takes the database to come back."""
    while True:
        try:
            return action()
        except DATABASE_AWAY as error:
            logger.warning("the database cannot be reached: %s", error)
            connection.close()
            time.sleep(timings().retry_s)


def death_of_engine(exit_code: int | None, log_tail: str) -> ErrorInfo:
    """What is to say of an engine that ended without its last word; None: it does not end."""
    if exit_code is None:
        how = "does not end"
    elif exit_code < 0:
        how = f"was ended by signal {-exit_code} ({signal.Signals(-exit_code).name})"
    else:
        how = f"ended with exit code {exit_code}"
    return ErrorInfo(
        type="EngineDied", message=f"The engine {how} before it could report a result.", traceback=log_tail
    )


def _out_of_time(limit_s: float, log_tail: str) -> ErrorInfo:
    return ErrorInfo(type=TimedOut.__name__, message=str(TimedOut(limit_s)), traceback=log_tail)


def out_of_host_memory(log_tail: str) -> ErrorInfo:
    """What is to say of an engine that the kernel ended."""
    message = "The host ran out of memory, and its kernel ended the engine."
    return ErrorInfo(type="OutOfMemory", message=message, traceback=log_tail)


def main() -> None:
    """Supervise the attempt whose id comes on standard input; where that ends before, there is none."""
    spare_engine = _get_ready() if SPARE in sys.argv[1:] else None
    line = sys.stdin.readline()
    if not line:
        return
    attempt_id = int(line)
    _write_log_to(AttemptFiles(attempt_id).supervisor_log)
    attempt = until_database_answers(lambda: Attempt.objects.select_related("job").get(pk=attempt_id))
    with about(attempt):
        try:
            Supervisor(attempt, spare_engine).run()
        except StaleFence:
            logger.warning("%s had lost its job before it began", attempt)


def _get_ready() -> subprocess.Popen[bytes]:
    """Start an engine that gets warm, and ask the database once, which imports what the first question needs.

    No connection stays open: it might be for hours.
    """
    engine = start_spare_engine()
    with contextlib.suppress(*DATABASE_AWAY):
        Attempt.objects.select_related("job").filter(pk=0).first()
    connection.close()
    return engine


def _write_log_to(path: Path) -> None:
    """Until now it was the worker's log that took what there was to say."""
    with path.open("ab") as log:
        for fd in (1, 2):
            os.dup2(log.fileno(), fd)


if __name__ == "__main__":
    main()
