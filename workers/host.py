"""This host: who it is, what it has, and the loops that keep it known, relay lost wake-ups and reap lost jobs."""

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

from django.conf import settings
from django.db import Error, connections

from jobs.attempt_files import AttemptFiles
from jobs.contract.catalog import Catalog
from jobs.contract.events import ErrorInfo
from jobs.contract.facts import HostFacts
from jobs.contract.states import Outcome
from jobs.logs import fields_of
from jobs.models import Attempt, AttemptNode, Device
from jobs.selectors.turns import claimable_jobs
from jobs.services import finish, nodes, searches, study_repeats, wake, workers
from jobs.services.claim import claim_next
from jobs.timings import timings
from workers.ceilings import CeilingWatch
from workers.cleaning import Cleaner, supervisor_is_running
from workers.compactor import Compactor, be_nice
from workers.engine_process import engine_command
from workers.estimator import answer_one
from workers.gpus import look_at_gpus
from workers.identity import TREE_VARIABLE, host_id, host_name, make_tree_tag
from workers.samples import sample_devices
from workers.spares import Spares
from workers.steadiness import Steadiness
from workers.supervisor_process import SupervisorProcess

logger = logging.getLogger(__name__)

_CLEAN_S = 1.0
_ESTIMATE_S = 0.5  # a person who fills in a form waits for it
_OBSERVE_S = 0.2
_DROP_S = 3600.0
_SEARCH_S = 2.0


class Host:
    """One per Celery worker process. Without a registration it claims nothing; the relay makes up for that."""

    def __init__(self) -> None:
        self.worker_id: int | None = None
        self.stopping = threading.Event()
        self._steadiness = Steadiness()
        self._cleaner = Cleaner()
        self._ceilings = CeilingWatch()
        self._compactor = Compactor(settings.ENVIRONMENT.keep_points_days)
        self._ceilings_due_at = 0.0
        self._spares = Spares(settings.ENVIRONMENT.spares)
        self._drop_at = 0.0
        self._called_in_vain = False  # since the relay last called, no wake-up has reached this worker

    def start(self) -> None:
        """Register in the background, then keep the loops going until `stop`."""
        threading.Thread(target=self._live, name="host", daemon=True).start()

    def stop(self) -> None:
        """Let every observer return and say good-bye; running attempts go on without this worker."""
        self.stopping.set()
        self._ceilings.give_way()
        self._spares.dismiss()
        if self.worker_id is not None:
            with contextlib.suppress(Error):  # then its silence says the same, a little later
                workers.say_goodbye(self.worker_id)

    def answer(self) -> subprocess.Popen[bytes] | None:
        """What a wake-up asks for: `take_one`."""
        self._called_in_vain = False
        return self.take_one()

    def take_one(self) -> subprocess.Popen[bytes] | None:
        """Claim the next job and hand it to a supervisor; None where there is nothing to do here."""
        if self.worker_id is None or self.stopping.is_set():
            return None
        self._ceilings.give_way()
        self._look_at_gpus()
        attempt = claim_next(self.worker_id)
        self._ceilings.give_way()  # to the attempt, should a measurement have begun meanwhile
        return start_supervisor(attempt, self._spares.take()) if attempt else None

    def join(self, node_id: int) -> subprocess.Popen[bytes] | None:
        """Start this host's node of an attempt that another host leads; None where there is nothing to start."""
        if self.worker_id is None or self.stopping.is_set():
            return None
        node = nodes.called_nodes(self.worker_id).filter(pk=node_id).first()
        if node is None:
            return None
        self._ceilings.give_way()
        return start_node_supervisor(node)

    def observe(self, supervisor: subprocess.Popen[bytes]) -> int | None:
        """Wait for a supervisor's end, or return None within a second when this worker shuts down."""
        connections.close_all()  # an observer may wait for hours
        while not self.stopping.is_set():
            try:
                return supervisor.wait(timeout=_OBSERVE_S)
            except subprocess.TimeoutExpired:
                continue
        return None

    def observe_adopted(self, attempt_id: int) -> None:
        """Wait for the end of an attempt that an earlier worker of this host started."""
        attempt = Attempt.objects.get(pk=attempt_id)
        connections.close_all()
        while supervisor_is_running(attempt) and not self.stopping.wait(_OBSERVE_S):
            continue

    def _live(self) -> None:
        while not self.stopping.is_set() and self._attempt_to(self._register) > 0:
            self.stopping.wait(timings().retry_s)
        actions = [self._beat_and_reap, self._relay, self._clean, self._look_at_gpus, self._estimate, self._sample]
        actions += [self._compact, self._use_idle_time, self._search]
        for action in actions:
            threading.Thread(target=self._repeat, args=(action,), name=action.__name__, daemon=True).start()

    def _repeat(self, action: Callable[[], float]) -> None:
        while not self.stopping.wait(self._attempt_to(action)):
            continue

    def _attempt_to(self, action: Callable[[], float]) -> float:
        """Do it; returns the seconds until it is due again, which is soon where the database could not be reached."""
        try:
            return action()
        except Error as error:
            logger.warning("the database cannot be reached: %s", error)
            connections.close_all()
            return timings().retry_s
        except Exception:
            # A host that lives by half would keep its devices and do nothing: better that it is started again.
            logger.exception("%s failed; this worker ends", action.__name__)
            os.kill(os.getpid(), signal.SIGTERM)
            raise

    def _register(self) -> float:
        facts, catalog = describe_engine()
        facts = facts.model_copy(update={"hostname": host_name()})
        worker = workers.register_worker(host_id(), os.getpid(), settings.WORKER_QUEUES, facts, catalog)
        self.worker_id = worker.pk
        logger.info("registered as %s with %s", worker, ", ".join(device.name for device in facts.devices))
        self._adopt()
        return 0.0

    def _adopt(self) -> None:
        """Observe what an earlier worker of this host left running; where that fails only Celery's tools miss it."""
        for attempt in Attempt.objects.filter(worker=self.worker_id, outcome=None):
            wake.ask_to_observe(host_id(), attempt.pk)

    def _beat_and_reap(self) -> float:
        workers.beat(self._known_worker_id())
        self._steadiness.note()
        if self._steadiness.lasts_s >= timings().lease_s:
            finish.reap_expired()
        return timings().heartbeat_s

    def _relay(self) -> float:
        """Wake the queues that have claimable work; what still waits at the next round, unheard, is taken unasked.

        Redis may be away for long, and consumers have been seen to fall silent after a reconnect.
        """
        served = claimable_jobs().filter(queue__workers=self._known_worker_id())
        queue_names = set(served.order_by().values_list("queue__name", flat=True)[:1000])
        while queue_names and self._called_in_vain and (supervisor := self.take_one()):
            threading.Thread(target=self.observe, args=(supervisor,), daemon=True).start()
        self._called_in_vain = bool(queue_names)
        for queue_name in queue_names:
            wake.wake(queue_name)
        for node in nodes.called_nodes(self._known_worker_id()):
            nodes.call(node)
        study_repeats.add_repeats()
        return timings().relay_s

    def _clean(self) -> float:
        self._cleaner.clean(self._known_worker_id())
        return _CLEAN_S

    def _estimate(self) -> float:
        return 0.0 if answer_one(self._known_worker_id()) else _ESTIMATE_S

    def _use_idle_time(self) -> float:
        """First measure, then get spares warm: beside each other they would spoil the measurement."""
        worker_id = self._known_worker_id()
        if settings.ENVIRONMENT.measure_ceilings and time.monotonic() >= self._ceilings_due_at:
            self._ceilings_due_at = time.monotonic() + self._ceilings.look(worker_id)
        return self._spares.keep(worker_id)

    def _search(self) -> float:
        """Take searches on whose runs have ended; apart from the relay, because it takes a second to think."""
        searches.advance_open()
        return _SEARCH_S

    def _look_at_gpus(self) -> float:
        """Note on the rows of free GPUs whose processes are on them; the claim leaves those alone."""
        if self._ceilings.is_measuring:  # then a process of ours is on them
            return timings().heartbeat_s
        unleased = Device.objects.filter(worker=self._known_worker_id(), kind="cuda", is_present=True, attempt=None)
        devices = list(unleased)
        used = look_at_gpus(devices)
        for device in devices:
            words = used.get(device.pk, "")
            if words != device.foreign_use:
                unleased.filter(pk=device.pk).update(foreign_use=words)
        return timings().heartbeat_s

    def _sample(self) -> float:
        """What the devices are busy with, for the fleet's pages; a host that does not tell works as well."""
        devices = Device.objects.filter(worker=self._known_worker_id(), is_present=True)
        workers.record_samples(sample_devices(devices))
        if time.monotonic() >= self._drop_at:
            self._drop_at = time.monotonic() + _DROP_S
            workers.drop_old_uses()
        return timings().heartbeat_s

    def _compact(self) -> float:
        """Compact what ended a while ago, and later where something is being measured here."""
        be_nice()
        leased = Device.objects.filter(worker=self._known_worker_id()).exclude(attempt=None)
        return self._compactor.work(is_idle=not leased.exists())

    def _known_worker_id(self) -> int:
        if self.worker_id is None:
            raise RuntimeError("the host's loops run only after its registration")
        return self.worker_id


def start_supervisor(attempt: Attempt, spare: SupervisorProcess | None = None) -> subprocess.Popen[bytes] | None:
    """Hand the attempt over to a supervisor: the spare if it still lives, else a new one.

    Where that cannot be done, as on a full disk, the attempt is lost at once: None.
    """
    files = AttemptFiles(attempt.pk)
    try:
        files.folder.mkdir(parents=True, exist_ok=True)
        files.spec.write_text(json.dumps(attempt.job.spec))
        files.supervisor_log.touch()
        if spare and spare.hand_over(attempt):
            return spare.process
        supervisor = SupervisorProcess()
        supervisor.hand_over(attempt)
        return supervisor.process
    except OSError as error:
        if spare:
            spare.dismiss()
        logger.exception("the supervisor of %s could not be started", attempt, extra=fields_of(attempt))
        finish.lose_attempt(attempt, f"The supervisor could not be started: {error}.", release_devices=True)
        return None


def start_node_supervisor(node: AttemptNode) -> subprocess.Popen[bytes] | None:
    """Start the supervisor of a node as `start_supervisor` does an attempt's; None where it is there already."""
    files = AttemptFiles(node.attempt_id, node.rank)
    tag = make_tree_tag()
    if not nodes.join(node, tag):
        return None
    try:
        files.folder.mkdir(parents=True, exist_ok=True)
        files.spec.write_text(json.dumps(node.attempt.job.spec))
        with files.supervisor_log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "workers.node_supervisor", str(node.pk)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=os.environ | {TREE_VARIABLE: tag},
            )
    except OSError as error:
        logger.exception("the supervisor of %s could not be started", node, extra=fields_of(node.attempt))
        message = f"The supervisor could not be started: {error}."
        nodes.end_node(node, Outcome.LOST, ErrorInfo(type="Lost", message=message))
        return None


def describe_engine() -> tuple[HostFacts, Catalog]:
    """What the engine says about this host, asked in a process of its own: a Celery worker never imports torch."""
    result = subprocess.run([*engine_command(), "describe"], check=True, capture_output=True, timeout=300)
    described = json.loads(result.stdout)
    catalog = Catalog.model_validate(described["catalog"])
    for problem in catalog.problems:
        logger.warning("%s", problem)
    return HostFacts.model_validate(described["facts"]), catalog


host = Host()
