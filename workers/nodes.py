"""The other hosts of an attempt, as the supervisor of its first one sees them."""

import socket
import time
from collections.abc import Callable

from django.conf import settings

from jobs.contract.errors import RankFailed
from jobs.contract.events import ErrorInfo, Finished
from jobs.contract.states import Outcome
from jobs.models import Attempt, AttemptNode
from jobs.services import nodes
from jobs.timings import timings
from workers.steadiness import Steadiness

_NOWHERE = "192.0.2.1"  # RFC 5737: an address of nobody; the way there tells this host's own


class Nodes:
    """Calls them, notices when one has gone, and waits for their end. For an attempt on one host it does nothing."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._has_others = attempt.job.train_spec.num_nodes > 1
        self._steadiness = Steadiness()  # of this supervisor: the ground on which it may call others silent
        self._endpoint = ""  # chosen once, for others may have read it although the answer to writing it was lost
        self._over_at: float | None = None

    def call(self) -> list[str]:
        """Choose where all meet and ask the others to come; the engine's arguments for node 0."""
        if not self._has_others:
            return []
        self._endpoint = self._endpoint or f"{node_address()}:{_free_port()}"
        nodes.open_rendezvous(self._attempt, self._endpoint)
        return arguments_for(self._attempt, self._endpoint, rank=0)

    def note_heartbeat(self) -> None:
        """This supervisor has just written its own."""
        self._steadiness.note()

    @property
    def are_over(self) -> bool:
        """Whether another node has ended and left the engine here the time to notice; it may wait for it for ever."""
        if not self._has_others:
            return False
        if self._over_at is None and (self._find_lost() or nodes.failed_node(self._attempt)):
            self._over_at = time.monotonic() + timings().kill_grace_s
        return self._over_at is not None and time.monotonic() >= self._over_at

    def stop(self, beat: Callable[[], object], give_up: Callable[[], bool]) -> None:
        """Have the others end and wait until they have, or are not heard from any more."""
        if not self._has_others:
            return
        nodes.request_stop(self._attempt)
        while nodes.still_there(self._attempt, without_silent=self._may_judge) and not give_up():
            beat()
            time.sleep(timings().cancel_poll_s / 2)

    def find_loss(self) -> str:
        """Which node was lost, as a sentence; empty where none was."""
        lost = self._find_lost() if self._has_others else None
        if lost is None:
            return ""
        told = ErrorInfo.model_validate(lost.error).message if lost.error else "It was not heard from within its lease."
        return f"{_name(lost)} was lost: {told}"

    def explain(self, told: Finished | None) -> tuple[Outcome, ErrorInfo] | None:
        """How the attempt ended by the words of all nodes; None where node 0's own suffice.

        A rank that loses its connection knows less than the one that caused it. Where the causing one is not
        certain, both are told.
        """
        failed = nodes.failed_node(self._attempt) if self._has_others else None
        if failed is None or (told and told.error and told.error.type != RankFailed.__name__ and not _was_ended(told)):
            return None
        theirs = ErrorInfo.model_validate(failed.error)
        message = f"{_name(failed)}: {theirs.message}"
        if told and told.error and not _was_ended(told) and theirs.type == RankFailed.__name__:
            message = f"{told.error.message} {message}"
        return Outcome(failed.outcome or Outcome.FAILED), theirs.model_copy(update={"message": message})

    def _find_lost(self) -> AttemptNode | None:
        return nodes.lost_node(self._attempt, or_silent=self._may_judge)

    @property
    def _may_judge(self) -> bool:
        return self._steadiness.lasts_s >= timings().lease_s


def arguments_for(attempt: Attempt, endpoint: str, rank: int) -> list[str]:
    """What tells an engine its place among the nodes."""
    return ["--rendezvous", endpoint, "--rendezvous-id", f"attempt-{attempt.pk}", "--node-rank", str(rank)]


def node_address() -> str:
    """Where other hosts reach this one: as set, else the address from which it reaches them."""
    if settings.ENVIRONMENT.node_address:
        return settings.ENVIRONMENT.node_address
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((_NOWHERE, 9))  # sends nothing: the kernel only picks the way
            return str(probe.getsockname()[0])
    except OSError:
        return socket.gethostname()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def _name(node: AttemptNode) -> str:
    return f"Node {node.rank} ({node.worker.hostname})" if node.worker else f"Node {node.rank}"


def _was_ended(told: Finished) -> bool:
    return told.outcome is Outcome.CANCELLED
