"""Warm spares: supervisors that wait for an attempt with an engine that has its imports done.

They are started only while nothing runs on the host: the imports beside a job would slow its steps. Waiting they cost
memory and nothing else.
"""

import logging
import threading

from jobs.timings import timings
from workers.ceilings import is_idle
from workers.supervisor_process import SupervisorProcess

logger = logging.getLogger(__name__)

_LOOK_S = 1.0


class Spares:
    """Keeps `num_wanted` of them."""

    def __init__(self, num_wanted: int) -> None:
        self._num_wanted = num_wanted
        self._waiting: list[SupervisorProcess] = []
        self._lock = threading.Lock()

    def keep(self, worker_id: int) -> float:
        """Start one if there are too few and the host idles; returns the seconds until it is time to look again."""
        if self._drop_dead():
            logger.warning("a spare ended before it was used; jobs start cold for a while")
            return _after_failure_s()
        try:
            if len(self._waiting) < self._num_wanted and is_idle(worker_id):
                self._start_one()
                if not is_idle(worker_id):  # what was claimed before the spare was there could not take it
                    self._dismiss_all()
        except OSError as error:  # a host without room for a spare does its work all the same
            logger.warning("no spare could be started: %s", error)
            return _after_failure_s()
        return _LOOK_S

    def take(self) -> SupervisorProcess | None:
        """The one that has waited longest, for the caller alone; None where there is none."""
        with self._lock:
            living = (spare for spare in self._waiting if spare.is_alive)
            spare = next(living, None)
            if spare:
                self._waiting.remove(spare)
            return spare

    def dismiss(self) -> None:
        """None are wanted any more."""
        self._num_wanted = 0
        self._dismiss_all()

    def _dismiss_all(self) -> None:
        with self._lock:
            for spare in self._waiting:
                spare.dismiss()
            self._waiting = []

    def _drop_dead(self) -> bool:
        """Forget those that have ended; whether there were any."""
        with self._lock:
            num_before = len(self._waiting)
            self._waiting = [spare for spare in self._waiting if spare.is_alive]
            return len(self._waiting) < num_before

    def _start_one(self) -> None:
        with self._lock:
            if len(self._waiting) < self._num_wanted:  # it may have been dismissed meanwhile
                self._waiting.append(SupervisorProcess(is_spare=True))


def _after_failure_s() -> float:
    """What failed may do so again, and a start takes the host's processors for seconds."""
    return 3 * timings().relay_s
