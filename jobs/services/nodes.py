"""The other hosts of an attempt: they are called, they join, show that they live, and end, each once."""

from datetime import timedelta

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from jobs.contract.events import ErrorInfo
from jobs.contract.states import Outcome
from jobs.models import Attempt, AttemptNode
from jobs.services.devices import quarantine_device
from jobs.services.errors import StaleFence
from jobs.services.finish import as_json
from jobs.services.wake import ask_to_join
from jobs.timings import timings


def open_rendezvous(attempt: Attempt, endpoint: str) -> None:
    """Node 0 is about to wait at HOST:PORT: call the others there."""
    with transaction.atomic():
        others = AttemptNode.objects.filter(attempt=attempt, ended_at=None)
        others.update(rendezvous=endpoint, lease_expires_at=Now() + _lease())
        for node in others.select_related("worker").defer("worker__facts", "worker__catalog"):
            transaction.on_commit(lambda node=node: call(node), robust=True)  # type: ignore[misc]


def call(node: AttemptNode) -> None:
    """Ask a node's host to join; the message may be lost, so the host's relay asks again."""
    if node.worker:
        ask_to_join(node.worker.host_id, node.pk)


def called_nodes(worker_id: int) -> QuerySet[AttemptNode]:
    """The nodes that a host has been called to be, and has not joined yet."""
    waiting = AttemptNode.objects.filter(worker=worker_id, joined_at=None, ended_at=None, attempt__outcome=None)
    return waiting.exclude(rendezvous="").select_related("worker", "attempt__job")


def join(node: AttemptNode, tree_tag: str) -> bool:
    """Note that the host starts its node now; False where it has done so already, or is not wanted any more."""
    joined = AttemptNode.objects.filter(pk=node.pk, joined_at=None, ended_at=None, attempt__outcome=None)
    return joined.update(joined_at=Now(), tree_tag=tree_tag, lease_expires_at=Now() + _lease()) == 1


def beat(node: AttemptNode, **values: object) -> None:
    """The node lives; raises `StaleFence` where it has been told to have ended."""
    living = AttemptNode.objects.filter(pk=node.pk, ended_at=None)
    if living.update(lease_expires_at=Now() + _lease(), **values) != 1:
        raise StaleFence(str(node))


def request_stop(attempt: Attempt) -> None:
    """Node 0 is done: those that have not joined never will, the others are to end."""
    AttemptNode.objects.filter(attempt=attempt, joined_at=None, ended_at=None).update(
        ended_at=Now(), outcome=Outcome.CANCELLED
    )
    AttemptNode.objects.filter(attempt=attempt, ended_at=None, stop_requested_at=None).update(stop_requested_at=Now())


def end_node(node: AttemptNode, outcome: Outcome, error: ErrorInfo | None = None, left_behind: str = "") -> None:
    """Nothing of the attempt is left on the node's host, but for what `left_behind` names; its devices are then
    taken out of service. They are freed with the attempt's end. A second end changes nothing.
    """
    with transaction.atomic():
        living = AttemptNode.objects.filter(pk=node.pk, ended_at=None)
        living.update(ended_at=Now(), outcome=outcome, error=as_json(error) if error else None)
        if left_behind:
            for device in node.attempt.devices.filter(worker=node.worker_id):
                quarantine_device(device, left_behind)


def still_there(attempt: Attempt, *, without_silent: bool) -> bool:
    """Whether a node has not ended yet; one whose lease has run out does not count where the caller may judge that."""
    living = AttemptNode.objects.filter(attempt=attempt, ended_at=None)
    return (living.filter(lease_expires_at__gte=Now()) if without_silent else living).exists()


def lost_node(attempt: Attempt, *, or_silent: bool) -> AttemptNode | None:
    """A node whose supervisor or host is gone: it was found so, or its lease has run out."""
    lost = Q(outcome=Outcome.LOST)
    if or_silent:
        lost |= Q(ended_at=None, lease_expires_at__lt=Now())
    return AttemptNode.objects.filter(lost, attempt=attempt).select_related("worker").first()


def failed_node(attempt: Attempt) -> AttemptNode | None:
    """The node whose engine failed first."""
    failed = AttemptNode.objects.filter(attempt=attempt, error__isnull=False).exclude(outcome=Outcome.LOST)
    return failed.select_related("worker").order_by("ended_at").first()


def _lease() -> timedelta:
    return timedelta(seconds=timings().lease_s)
