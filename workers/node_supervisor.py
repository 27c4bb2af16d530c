"""One node of an attempt that another host leads: launch the engine, show that it lives, obey, leave nothing behind.

`python -m workers.node_supervisor NODE_ID`, started by the Celery worker in a session of its own, so that it outlives
that worker. It writes nothing but its node's row: what the run does is told by node 0, and the attempt's end is written
there, after every node has noted its own.
"""

import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

import django
from django.db import connection

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    django.setup()

from jobs.attempt_files import AttemptFiles, tail
from jobs.contract.events import ErrorInfo, Finished
from jobs.contract.states import Outcome
from jobs.logs import about
from jobs.models import AttemptNode, Device
from jobs.services import nodes
from jobs.services.errors import StaleFence
from jobs.timings import timings
from workers.engine_process import EventReader, LogKeeper, start_engine
from workers.nodes import arguments_for
from workers.oom import OomWatch
from workers.processes import become_subreaper, end_descendants, in_words
from workers.resume import resumed_path
from workers.supervisor import (
    DATABASE_AWAY,
    STOP_GRACE_S,
    STOPPED,
    TICK_S,
    death_of_engine,
    out_of_host_memory,
    until_database_answers,
)

logger = logging.getLogger(__name__)


class NodeSupervisor:
    """Owns one node until it has ended, which it has to once the attempt has another owner or none."""

    def __init__(self, node: AttemptNode) -> None:
        self.node = node
        self.attempt = node.attempt
        self.files = AttemptFiles(self.attempt.pk, node.rank)
        self.log = LogKeeper(self.files.log)
        self.oom = OomWatch()
        self.is_over = False
        self.stopping = False
        self._due = {self._beat: 0.0, self._look: 0.0}
        self._database_retry_at = 0.0

    def run(self) -> None:
        """The whole life of the node."""
        devices, resume = until_database_answers(self._begin)
        signal.signal(signal.SIGTERM, self._stop)
        become_subreaper()
        place = arguments_for(self.attempt, self.node.rendezvous, self.node.rank)
        try:
            engine = start_engine(self.files, devices, resume, place)
        except OSError as error:
            message = f"The engine could not be started: {error}."
            self._end(Outcome.FAILED, ErrorInfo(type="CannotStart", message=message))
            return
        try:
            self._watch(engine)
        finally:
            end_descendants(0, timings().give_up_s)

    def _begin(self) -> tuple[list[Device], Path | None]:
        nodes.beat(self.node, supervisor_pid=os.getpid())
        return list(self.attempt.devices.filter(worker=self.node.worker_id)), resumed_path(self.attempt)

    def _watch(self, engine: subprocess.Popen[bytes]) -> None:
        while engine.poll() is None and not (self.is_over or self.stopping):
            self._tick()
            time.sleep(TICK_S)
        left = end_descendants(STOP_GRACE_S if self.stopping else timings().kill_grace_s, timings().give_up_s)
        self.log.shorten()  # what was printed since the last look
        left_behind = f"Left by job {self.attempt.job_id} and not to be ended: {in_words(left)}" if left else ""
        self._end(*self._outcome(engine.poll()), left_behind)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.stopping = True

    def _tick(self) -> None:
        """Do what is due; an unreachable database only postpones it."""
        self.log.shorten()
        if time.monotonic() < self._database_retry_at:
            return
        try:
            for action, due_at in self._due.items():
                if time.monotonic() >= due_at:
                    self._due[action] = time.monotonic() + action()
        except StaleFence:
            self.is_over = True
        except DATABASE_AWAY as error:
            logger.warning("the database cannot be reached, the engine goes on: %s", error)
            connection.close()
            self._database_retry_at = time.monotonic() + timings().retry_s

    def _beat(self) -> float:
        nodes.beat(self.node)
        return timings().heartbeat_s

    def _look(self) -> float:
        """Whether the attempt has ended, belongs to somebody else, or is about to end."""
        node = AttemptNode.objects.select_related("attempt__job").get(pk=self.node.pk)
        attempt, job = node.attempt, node.attempt.job
        is_owner = attempt.outcome is None and job.fence == attempt.fence
        self.is_over = not is_owner or bool(node.stop_requested_at or job.cancel_requested_at)
        return timings().cancel_poll_s

    def _outcome(self, exit_code: int | None) -> tuple[Outcome, ErrorInfo | None]:
        """How the engine ended by its own word, else by what is known of its end."""
        told = self._last_word()
        if told and told.outcome is not Outcome.CANCELLED:
            return told.outcome, told.error
        if self.stopping:
            return Outcome.LOST, ErrorInfo(type="Lost", message=STOPPED)
        if self.is_over:
            return Outcome.CANCELLED, None
        if exit_code == -signal.SIGKILL and self.oom.has_killed:
            return Outcome.OUT_OF_MEMORY, out_of_host_memory(tail(self.files.log))
        return Outcome.FAILED, death_of_engine(exit_code, tail(self.files.log))

    def _last_word(self) -> Finished | None:
        """Few events are told by an engine that does not report, and this one is the last."""
        events = EventReader(self.files.events).read_new()
        return next((event for event in reversed(events) if isinstance(event, Finished)), None)

    def _end(self, outcome: Outcome, error: ErrorInfo | None, left_behind: str = "") -> None:
        until_database_answers(lambda: nodes.end_node(self.node, outcome, error, left_behind))


def main() -> None:
    """Supervise the node named on the command line."""
    rows = AttemptNode.objects.select_related("attempt__job")
    node = until_database_answers(lambda: rows.get(pk=int(sys.argv[1])))
    with about(node.attempt):
        try:
            NodeSupervisor(node).run()
        except StaleFence:
            logger.warning("%s had ended before it began", node)


if __name__ == "__main__":
    main()
