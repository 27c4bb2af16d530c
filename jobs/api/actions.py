"""What people do to jobs that are there: cancel, queue again, copy, change; one and in bulk.

They join the router of the jobs: ninja serves all methods of an address from one router.
"""

from typing import Literal

from django.db import transaction
from django.http import HttpRequest
from ninja import Schema, Status
from pydantic import ConfigDict, Field

from jobs.api.auth import asker
from jobs.api.choices import choose_queue
from jobs.api.errors import ErrorsOut, refusal
from jobs.api.jobs import router, visible_job
from jobs.api.serializers import JobOut
from jobs.contract.messages import gettext_noop as _
from jobs.models import Job
from jobs.services.actions import MOST_JOBS, Act, Order, Result, perform, perform_all
from jobs.services.change import MOST_PRIORITY
from jobs.services.tags import MOST_TAGS

_REFUSED: dict[int, type[Schema]] = {401: ErrorsOut, 403: ErrorsOut, 404: ErrorsOut, 409: ErrorsOut, 422: ErrorsOut}


class ReasonIn(Schema):
    """Why somebody does something."""

    model_config = ConfigDict(extra="forbid")

    reason: str = Field("", max_length=500)


class ChangeIn(ReasonIn):
    """What to change about a job; what is left out stays. Only its tags can be changed once it has started."""

    priority: int | None = Field(None, ge=-MOST_PRIORITY, le=MOST_PRIORITY)
    queue: str | None = Field(None, description="The name of another queue.")
    time_limit_s: float | None = Field(None, gt=0, description="Null takes the limit away.")
    place: Literal["first", "last"] | None = Field(None, description="To the front or the end of its line.")
    after: int | None = Field(None, ge=1, le=2**63 - 1, description="A waiting job, to stand behind it.")
    tags: list[str] | None = Field(None, max_length=MOST_TAGS, description="All labels that it is to have.")


class BulkIn(ReasonIn):
    """One act for many jobs; a priority, a queue or a time limit goes with the act that is about it."""

    act: Act = Field(description="`first` and `last` move in the line, `place` puts them behind `after`.")
    jobs: list[int] = Field(min_length=1, max_length=MOST_JOBS)
    priority: int | None = Field(None, ge=-MOST_PRIORITY, le=MOST_PRIORITY)
    queue: str | None = None
    time_limit_s: float | None = Field(None, gt=0)
    after: int | None = Field(None, ge=1, le=2**63 - 1)
    tags: list[str] = Field([], max_length=MOST_TAGS, description="For `tag` and `untag`.")


class ResultOut(Schema):
    """What came of it for one job; `id` is the copy's where copies were made, `error` empty where it was done."""

    job: int
    id: int | None
    state: str | None
    error: str

    @classmethod
    def of(cls, result: Result) -> "ResultOut":
        """The result of one job."""
        done = result.job if not result.error else None
        state = result.job.state if result.job else None
        return cls(job=result.job_id, id=done.pk if done else None, state=state, error=result.error)


class ResultsOut(Schema):
    """One result per job, in the order in which they were worked on."""

    results: list[ResultOut]


@router.post("/jobs/{int:job_id}/cancel", response={200: JobOut} | _REFUSED, summary="Cancel a job")
def cancel(request: HttpRequest, job_id: int, body: ReasonIn | None = None) -> JobOut:
    """End a job: at once where it waits, through its supervisor where it runs. 409 where it has ended."""
    return _performed(request, job_id, Act.CANCEL, body)


@router.post("/jobs/{int:job_id}/requeue", response={200: JobOut} | _REFUSED, summary="Queue a job again")
def requeue(request: HttpRequest, job_id: int, body: ReasonIn | None = None) -> JobOut:
    """Let an ended job make another attempt. 409 where it has not ended."""
    return _performed(request, job_id, Act.REQUEUE, body)


@router.post("/jobs/{int:job_id}/clone", response={201: JobOut} | _REFUSED, summary="Run a copy of a job")
def clone(request: HttpRequest, job_id: int, body: ReasonIn | None = None) -> Status[JobOut]:
    """A new job of yours that asks for the same in the same queue."""
    return Status(201, _performed(request, job_id, Act.CLONE, body))


@router.post(
    "/jobs/{int:job_id}/fit",
    response={200: JobOut, 201: JobOut} | _REFUSED,
    summary="Run a job whose memory ran out in smaller micro-batches",
)
def fit(request: HttpRequest, job_id: int, body: ReasonIn | None = None) -> Status[JobOut]:
    """A new job of yours with the same global batch; 200 and the one that is there where it was queued before."""
    known = Job.objects.filter(smaller_of=job_id).values_list("pk", flat=True).first()
    made = _performed(request, job_id, Act.FIT, body)
    return Status(200 if made.id == known else 201, made)


@router.patch("/jobs/{int:job_id}", response={200: JobOut} | _REFUSED, summary="Change a job")
def change(request: HttpRequest, job_id: int, body: ChangeIn) -> JobOut:
    """Priority, queue, time limit, place in the line: all that is named, or nothing. 409 where it has started."""
    job, user = visible_job(request, job_id), asker(request)
    with transaction.atomic():
        for order in _orders(body):
            perform(user, job, order)
            job = visible_job(request, job_id)
        if body.tags is not None:
            perform(user, job, Order(Act.TAGS, body.reason, tags=tuple(body.tags)))
    return JobOut.of(visible_job(request, job_id))


@router.post("/jobs/bulk", response={200: ResultsOut} | _REFUSED, summary="Act on many jobs")
def act_on_jobs(request: HttpRequest, body: BulkIn) -> ResultsOut:
    """Each job for itself: one that is too late, or not yours, has a sentence in `error` and the others are done."""
    if body.act is Act.PRIORITY and body.priority is None:
        raise refusal("priority", "missing", _("This field is required."))
    if body.act is Act.MOVE and body.queue is None:
        raise refusal("queue", "missing", _("This field is required."))
    order = Order(
        body.act,
        body.reason,
        priority=body.priority or 0,
        queue=choose_queue(body.queue) if body.queue is not None else None,
        time_limit_s=body.time_limit_s,
        after=body.after,
        tags=tuple(body.tags),
    )
    return ResultsOut(results=[ResultOut.of(result) for result in perform_all(asker(request), body.jobs, order)])


def _performed(request: HttpRequest, job_id: int, act: Act, body: ReasonIn | None) -> JobOut:
    order = Order(act, body.reason if body else "")
    job = perform(asker(request), visible_job(request, job_id), order)
    return JobOut.of(visible_job(request, job.pk))


def _orders(body: ChangeIn) -> list[Order]:
    """What the body names, moves last: a priority is judged by the queue that the job comes from."""
    orders = []
    if body.priority is not None:
        orders.append(Order(Act.PRIORITY, body.reason, priority=body.priority))
    if "time_limit_s" in body.model_fields_set:
        orders.append(Order(Act.TIME_LIMIT, body.reason, time_limit_s=body.time_limit_s))
    if body.queue is not None:
        orders.append(Order(Act.MOVE, body.reason, queue=choose_queue(body.queue)))
    if body.after is not None:
        orders.append(Order(Act.PLACE, body.reason, after=body.after))
    if body.place is not None:
        orders.append(Order(Act(body.place), body.reason))
    return orders
