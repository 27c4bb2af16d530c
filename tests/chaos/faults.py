"""What is done to the installation: each fault is one function, and a seed chooses among them."""

import contextlib
import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psutil
import psycopg
import redis
from celery import Celery
from django.conf import settings
from django.db import connections

from jobs.models import Job, Queue, User, Worker
from jobs.services.cancel import request_cancel
from jobs.services.errors import NotPossible
from jobs.timings import timings
from tests.chaos.installation import Installation
from tests.system.postgres import PostgresServer
from webapp.broker import celery_url


@dataclass
class Faults:
    """The faults, and what has to be put right again before the jobs can be counted."""

    installation: Installation
    server: PostgresServer | None  # None: SQLite
    random: random.Random
    staff: User
    counts: dict[str, int] = field(default_factory=dict)
    _stopped: dict[int, psutil.Process] = field(default_factory=dict)
    _threads: list[threading.Thread] = field(default_factory=list)

    def inject(self) -> None:
        """One fault, chosen by the seed; one that finds nobody to happen to is not counted."""
        fault, _weight = self.random.choices(_FAULTS, [weight for _fault, weight in _FAULTS])[0]
        if fault(self):
            self.counts[fault.__name__.strip("_")] = self.counts.get(fault.__name__.strip("_"), 0) + 1

    def undo(self) -> None:
        """Let everything that was stopped, paused or locked go on."""
        for thread in self._threads:
            thread.join()
        for process in list(self._stopped.values()):
            with contextlib.suppress(psutil.Error):
                process.resume()
        Queue.objects.update(paused_at=None)
        Worker.objects.update(is_draining=False)

    # ------------------------------------------------------------ processes

    def kill_supervisor(self) -> bool:
        return self._kill(self.installation.supervisors)

    def kill_engine(self) -> bool:
        return self._kill(self.installation.engines)

    def kill_worker(self) -> bool:
        return self._kill(self.installation.workers)

    def kill_broker(self) -> bool:
        return self._kill([self.installation.broker] if self.installation.broker else [])

    def stop_supervisor(self) -> bool:
        """Longer or shorter than its lease."""
        return self._stop(self.installation.supervisors)

    def stop_worker(self) -> bool:
        return self._stop(self.installation.workers)

    def _kill(self, processes: list[psutil.Process]) -> bool:
        if not processes:
            return False
        with contextlib.suppress(psutil.Error):
            self.random.choice(processes).kill()
        return True

    def _stop(self, processes: list[psutil.Process]) -> bool:
        processes = [process for process in processes if process.pid not in self._stopped]
        if not processes:
            return False
        process = self.random.choice(processes)
        with contextlib.suppress(psutil.Error):
            process.suspend()
        self._stopped[process.pid] = process
        self._later(self._some_leases(), lambda: self._resume(process))
        return True

    def _resume(self, process: psutil.Process) -> None:
        with contextlib.suppress(psutil.Error):
            process.resume()
        del self._stopped[process.pid]

    def _some_leases(self) -> float:
        return self.random.uniform(0.3, 2.0) * timings().lease_s

    def _later(self, pause_s: float, action: Callable[[], None]) -> None:
        def wait() -> None:
            time.sleep(pause_s)
            action()

        self._threads.append(threading.Thread(target=wait, daemon=True))
        self._threads[-1].start()

    # -------------------------------------------------------------- messages

    def flush_broker(self) -> bool:
        with contextlib.suppress(redis.RedisError), redis.Redis.from_url(settings.REDIS_URL) as broker:
            return bool(broker.flushall())
        return False

    def wake_twenty_times(self) -> bool:
        app = Celery(broker=celery_url(settings.REDIS_URL))
        options = {"socket_timeout": 1, "max_retries": 0}
        with contextlib.suppress(Exception), app.connection_for_write(transport_options=options) as connection:
            for _time in range(20):
                app.send_task(
                    "workers.wake",
                    kwargs={"queue_name": "default"},
                    queue="pitwall.default",
                    connection=connection,
                    retry=False,
                )
            return True
        return False

    # -------------------------------------------------------------- database

    def lock_database(self) -> bool:
        """Nobody writes for a while."""
        held_s = self._some_leases()
        opened = threading.Event()

        def hold() -> None:
            with self._write_lock():
                opened.set()
                time.sleep(held_s)

        self._threads.append(threading.Thread(target=hold, daemon=True))
        self._threads[-1].start()
        return opened.wait(30)

    @contextmanager
    def _write_lock(self) -> Iterator[None]:
        if self.server:
            with psycopg.connect(os.environ["PITWALL_DATABASE_URL"]) as connection:
                connection.execute("LOCK TABLE jobs_job, jobs_attempt, jobs_device IN EXCLUSIVE MODE")
                yield
                connection.rollback()
            return
        connection = sqlite3.connect(settings.DATABASES["default"]["NAME"], isolation_level=None, timeout=30)
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")
        connection.close()

    def lose_database(self) -> bool:
        """The server ends and comes back; a file does not do that."""
        if not self.server:
            return False
        for thread in self._threads:  # one that holds the lock would fail
            thread.join()
        connections.close_all()
        self.server.stop()
        time.sleep(self._some_leases())
        self.server.start()
        return True

    # ---------------------------------------------------------------- people

    def cancel_a_job(self) -> bool:
        open_jobs = list(Job.objects.filter(outcome=None, cancel_requested_at=None))
        if not open_jobs:
            return False
        with contextlib.suppress(NotPossible):
            request_cancel(self.random.choice(open_jobs), self.staff, "chaos")
        return True

    def pause_or_resume(self) -> bool:
        paused = Queue.objects.filter(paused_at=None).update(paused_at="2026-01-01T00:00Z")
        if not paused:
            Queue.objects.update(paused_at=None)
        return True

    def drain_or_resume(self) -> bool:
        worker = self.random.choice(list(Worker.objects.order_by("pk")))
        Worker.objects.filter(pk=worker.pk).update(is_draining=not worker.is_draining)
        return True


_FAULTS: list[tuple[Callable[[Faults], bool], int]] = [
    (Faults.kill_supervisor, 5),
    (Faults.stop_supervisor, 5),
    (Faults.kill_engine, 1),
    (Faults.kill_worker, 2),
    (Faults.stop_worker, 2),
    (Faults.kill_broker, 1),
    (Faults.flush_broker, 2),
    (Faults.wake_twenty_times, 3),
    (Faults.lock_database, 1),
    (Faults.lose_database, 1),
    (Faults.cancel_a_job, 1),
    (Faults.pause_or_resume, 1),
    (Faults.drain_or_resume, 1),
]
