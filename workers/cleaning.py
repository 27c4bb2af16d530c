"""What died on this host is taken back without waiting for its lease, and devices are freed once they are clean."""

import logging
import time

import psutil

from jobs.contract.events import ErrorInfo
from jobs.contract.states import Outcome
from jobs.models import Attempt, AttemptNode
from jobs.services import finish, nodes
from jobs.services.wake import wake
from jobs.timings import timings
from workers.identity import TREE_VARIABLE
from workers.processes import in_words, is_running, kill, processes_with_variable

logger = logging.getLogger(__name__)


def supervisor_is_running(attempt: Attempt) -> bool:
    """Whether the attempt's supervisor lives on this host; it may be stopped and silent all the same."""
    return is_running(attempt.supervisor_pid, TREE_VARIABLE, attempt.tree_tag)


def node_is_running(node: AttemptNode) -> bool:
    """The same of the supervisor of an attempt's other node, which is this host."""
    return is_running(node.supervisor_pid, TREE_VARIABLE, node.tree_tag)


class Cleaner:
    """Remembers how long it has been trying to end what an attempt left behind."""

    def __init__(self) -> None:
        self._give_up_at: dict[int, float] = {}  # by attempt, by `time.monotonic`; no host is two nodes of one

    def clean(self, worker_id: int) -> None:
        """One round over the attempts of this host."""
        live = Attempt.objects.filter(worker=worker_id, outcome=None).exclude(supervisor_pid=None)
        for attempt in live:
            if not supervisor_is_running(attempt):
                finish.lose_attempt(attempt, "The supervisor of this attempt died.", release_devices=False)
        for node in AttemptNode.objects.filter(worker=worker_id, ended_at=None).exclude(supervisor_pid=None):
            if not node_is_running(node):
                self._end_when_clean(node)
        over = Attempt.objects.filter(devices__worker=worker_id, outcome__isnull=False).distinct()
        for attempt in over:
            self._free_when_clean(attempt, worker_id)

    def _end_when_clean(self, node: AttemptNode) -> None:
        """Note the end of a node whose supervisor has died, once nothing of it is left."""
        left = self._end_what_is_left(node.attempt_id, node.tree_tag)
        if left is not None:
            error = ErrorInfo(type="Lost", message="Its supervisor died.")
            nodes.end_node(node, Outcome.LOST, error, _sentence(node.attempt, left) if left else "")

    def _free_when_clean(self, attempt: Attempt, worker_id: int) -> None:
        """Free the devices of an ended attempt once nothing of it is left; a living supervisor cleans up itself."""
        node = attempt.nodes.filter(worker=worker_id).first()
        if node_is_running(node) if node else supervisor_is_running(attempt):
            return
        left = self._end_what_is_left(attempt.pk, node.tree_tag if node else attempt.tree_tag)
        if left is not None:
            finish.free_devices(attempt, worker_id, _sentence(attempt, left) if left else "")
            wake(attempt.job.queue.name)

    def _end_what_is_left(self, attempt_id: int, tag: str) -> list[psutil.Process] | None:
        """End the processes with that tag; those that do not end in time, None while there is still time."""
        left = processes_with_variable(TREE_VARIABLE, tag) if tag else []
        give_up_at = self._give_up_at.setdefault(attempt_id, time.monotonic() + timings().give_up_s)
        if left and time.monotonic() < give_up_at:
            kill(left)
            return None
        del self._give_up_at[attempt_id]
        return left


def _sentence(attempt: Attempt, left: list[psutil.Process]) -> str:
    return f"Left by job {attempt.job_id} and not to be ended: {in_words(left)}"
