"""The order of a queue's line, changed by hand.

Staff put a job anywhere. Everybody else reorders their own jobs among the places that these have already, so that
nobody else's job waits longer for it.
"""

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext

from jobs.models import AuditAction, Job, Queue, User
from jobs.selectors.line import ahead_of, behind, place_of, waiting_in
from jobs.services.audit import note
from jobs.services.change import update_waiting
from jobs.services.errors import NotPossible
from jobs.services.wake import wake_on_commit

# Keys are seconds; a double at today's date tells about a quarter of a microsecond apart.
_SMALLEST_GAP_S = 1e-5
_STEP_S = 1e-3


def place_job(job: Job, by: User, after_id: int | None, reason: str = "") -> None:
    """Put the job directly behind another one of its queue, or with None at the head of the line.

    It takes the priority that it needs to stand there. Raises `NotPossible` where either does not wait there any more.
    """
    with transaction.atomic():
        Queue.objects.select_for_update().get(pk=job.queue_id)
        update_waiting(job)
        after = _waiting(job, after_id) if after_id is not None else None
        before = place_of(job)
        if by.is_staff:
            _squeeze_in(job, after)
        else:
            _permute_own(job, after)
        job.refresh_from_db()
        if (place := place_of(job)) != before:
            note(by, AuditAction.REORDER, job=job, reason=reason, before=before, after=place)
            wake_on_commit(job.queue.name)


def move_to_front(job: Job, by: User, reason: str = "") -> None:
    """Let the job be the next one."""
    place_job(job, by, None, reason)


def move_to_end(job: Job, by: User, reason: str = "") -> None:
    """Let the job be the last one."""
    last = waiting_in(job.queue_id).exclude(pk=job.pk).last()
    if last is None or waiting_in(job.queue_id).filter(behind(job)).exists():
        place_job(job, by, last.pk if last else None, reason)


def _waiting(job: Job, other_id: int) -> Job:
    """The other job, which must wait in the same queue."""
    other = waiting_in(job.queue_id).exclude(pk=job.pk).filter(pk=other_id).first()
    if other is None:
        raise NotPossible(
            gettext("Job %(after)s does not wait in the queue “%(queue)s” any more; the order is as it was.")
            % {"after": other_id, "queue": job.queue.name}
        )
    return other


def _squeeze_in(job: Job, after: Job | None) -> None:
    others = waiting_in(job.queue_id).exclude(pk=job.pk)
    following = (others.filter(behind(after)) if after else others).first()
    priority = min(job.priority, after.priority) if after else job.priority
    priority = max(priority, following.priority) if following else priority
    low = after.order_key if after and after.priority == priority else None
    high = following.order_key if following and following.priority == priority else None
    if low is not None and high is not None and high - low < _SMALLEST_GAP_S:
        low = _make_room(job, after)
    update_waiting(job, priority=priority, order_key=_between(low, high, job.order_key))


def _between(low: float | None, high: float | None, own: float) -> float:
    if low is None:
        return own if high is None or own < high else high - 1.0
    if high is None:
        return own if own > low else low + _STEP_S
    return (low + high) / 2


def _make_room(job: Job, after: Job | None) -> float:
    """Let everybody of that priority up to `after` step one second forward; the key of `after` from then on."""
    if after is None:
        raise ValueError("there is no end of room before the first one")
    band = waiting_in(job.queue_id).filter(priority=after.priority)
    for jobs in (band.filter(ahead_of(after)), band.filter(pk=after.pk)):
        jobs.order_by().update(order_key=F("order_key") - 1.0)
    return after.order_key - 1.0


def _permute_own(job: Job, after: Job | None) -> None:
    """Give the owner's jobs their own places in another order; the queue's row is locked, so none of them starts."""
    own = list(waiting_in(job.queue_id).filter(owner=job.owner_id).only("priority", "order_key"))
    places = [(each.priority, each.order_key) for each in own]
    others = [each for each in own if each.pk != job.pk]
    index = sum(_turn(each) <= _turn(after) for each in others) if after else 0
    changed = []
    for each, (priority, order_key) in zip([*others[:index], job, *others[index:]], places, strict=True):
        if (each.priority, each.order_key) != (priority, order_key):
            each.priority, each.order_key = priority, order_key
            changed.append(each)
    Job.objects.bulk_update(changed, ["priority", "order_key"], batch_size=500)


def _turn(job: Job) -> tuple[int, float, int]:
    return -job.priority, job.order_key, job.pk
