"""The door through which people act on jobs, one or many: who may, and what came of each in words."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from django.utils.translation import gettext

from jobs.messages import translate
from jobs.models import Job, Queue, User
from jobs.selectors.jobs import may_change, visible_jobs
from jobs.services.cancel import request_cancel
from jobs.services.change import change_priority, change_time_limit, move_job
from jobs.services.clone import clone_job
from jobs.services.errors import NotAllowed, NotPossible, SpecRefused
from jobs.services.fit import queue_proposal
from jobs.services.order import move_to_end, move_to_front, place_job
from jobs.services.requeue import requeue_job
from jobs.services.tags import add_tags, remove_tags, replace_tags

MOST_JOBS = 500  # in one request


class Act(StrEnum):
    """What people do to jobs."""

    CANCEL = "cancel"
    REQUEUE = "requeue"
    CLONE = "clone"
    FIT = "fit"  # after an out-of-memory: the same work in smaller micro-batches
    PRIORITY = "priority"
    MOVE = "move"
    TIME_LIMIT = "time_limit"
    PLACE = "place"
    FIRST = "first"
    LAST = "last"
    TAG = "tag"
    UNTAG = "untag"
    TAGS = "tags"


@dataclass(frozen=True)
class Order:
    """One act with what it needs."""

    act: Act
    reason: str = ""
    priority: int = 0
    queue: Queue | None = None
    time_limit_s: float | None = None
    tags: tuple[str, ...] = ()
    after: int | None = None  # the job behind which another is placed; None: at the head


@dataclass(frozen=True)
class Result:
    """What came of it for one job; `error` is a sentence, empty where it was done."""

    job_id: int
    job: Job | None  # as it is now; for what makes a new job, the new one
    error: str = ""


_DOERS: dict[Act, Callable[[Job, User, Order], Job | None]] = {
    Act.CANCEL: lambda job, by, order: request_cancel(job, by, order.reason),
    Act.REQUEUE: lambda job, by, order: requeue_job(job, by, order.reason),
    Act.CLONE: lambda job, by, order: clone_job(job, by, order.reason),
    Act.FIT: lambda job, by, order: queue_proposal(job, by, order.reason),
    Act.PRIORITY: lambda job, by, order: change_priority(job, by, order.priority, order.reason),
    Act.MOVE: lambda job, by, order: move_job(job, by, _needed(order.queue), order.reason),
    Act.TIME_LIMIT: lambda job, by, order: change_time_limit(job, by, order.time_limit_s, order.reason),
    Act.PLACE: lambda job, by, order: place_job(job, by, order.after, order.reason),
    Act.FIRST: lambda job, by, order: move_to_front(job, by, order.reason),
    Act.LAST: lambda job, by, order: move_to_end(job, by, order.reason),
    Act.TAG: lambda job, by, order: add_tags(job, by, order.tags, order.reason),
    Act.TAGS: lambda job, by, order: replace_tags(job, by, order.tags, order.reason),
    Act.UNTAG: lambda job, by, order: remove_tags(job, by, order.tags, order.reason),
}

_MAKE_NEW_JOBS = (Act.CLONE, Act.FIT)  # and leave the one that they are made from as it is


def perform(by: User, job: Job, order: Order) -> Job:
    """Do it to one job that the person sees; the job as it is now, or the new one that was made from it.

    Raises `NotAllowed` where they may not, `NotPossible` or `SpecRefused` where the job is not in the state for it.
    """
    if order.act not in _MAKE_NEW_JOBS and not may_change(by, job):
        raise NotAllowed(gettext("Job %(job)s is not yours. Its owner or staff can do this.") % {"job": job.pk})
    return _DOERS[order.act](job, by, order) or job


def perform_all(by: User, job_ids: Sequence[int], order: Order) -> list[Result]:
    """Do it to each of the jobs, each for itself; raises `NotPossible` where they are too many."""
    if len(job_ids) > MOST_JOBS:
        raise NotPossible(gettext("At most %(max)s jobs at once.") % {"max": MOST_JOBS})
    unique = list(dict.fromkeys(job_ids))
    if order.act in (Act.FIRST, Act.PLACE):
        unique.reverse()  # each goes to the same place, so the first one named goes there last
    jobs = visible_jobs(by).in_bulk(unique)
    return [_result(by, job_id, jobs.get(job_id), order) for job_id in unique]


def _result(by: User, job_id: int, job: Job | None, order: Order) -> Result:
    if job is None:
        return Result(job_id, None, gettext("There is no job %(job)s.") % {"job": job_id})
    try:
        return Result(job_id, perform(by, job, order))
    except (NotAllowed, NotPossible) as error:
        return Result(job_id, job, str(error))
    except SpecRefused as error:
        sentence = gettext("Job %(job)s: %(why)s") % {"job": job_id, "why": translate(error.findings[0])}
        return Result(job_id, job, sentence)


def _needed(queue: Queue | None) -> Queue:
    if queue is None:
        raise NotPossible(gettext("Say into which queue."))
    return queue
