"""An attempt ends: once, in one outcome, and its devices are free again."""

import json
import logging
import math
from typing import Any

from django.db import DatabaseError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from pydantic import BaseModel

from jobs.contract.events import ErrorInfo
from jobs.contract.metrics import Summary
from jobs.contract.states import LIVE_STATES, Outcome, State
from jobs.logs import fields_of
from jobs.loss_course import Course
from jobs.models import Attempt, Device, Job
from jobs.models.figures import RANKED_METRICS
from jobs.services.boards import note_run, read_course
from jobs.services.devices import quarantine_device
from jobs.services.errors import StaleFence
from jobs.services.margins import fix_margin
from jobs.services.reproductions import judge_reproductions
from jobs.services.wake import wake_on_commit

logger = logging.getLogger(__name__)


def finish_attempt(
    attempt: Attempt,
    outcome: Outcome,
    summary: Summary | None = None,
    error: ErrorInfo | None = None,
    *,
    left_behind: str = "",
) -> Outcome:
    """End the attempt and its job; raises `StaleFence` where the attempt is not the owner any more.

    Call it only when no process of the attempt is left on its first host, for it frees the devices there and on the
    other nodes that have ended; a sentence in `left_behind` says what could not be ended on the first one, and puts its
    devices into quarantine. A request to cancel that stands by now decides the outcome, unless the work was finished
    all the same. Returns the outcome that was stored.
    """
    course = read_course(attempt) if outcome is Outcome.SUCCEEDED else []
    with transaction.atomic():
        job = Job.objects.select_for_update().get(pk=attempt.job_id)
        if job.cancel_requested_at and outcome is not Outcome.SUCCEEDED:
            outcome = Outcome.CANCELLED
        ended = Job.objects.filter(pk=job.pk, fence=attempt.fence, state__in=LIVE_STATES)
        figures = finite_figures(summary) if summary else {}
        if ended.update(state=outcome.value, outcome=outcome.value, ended_at=Now(), **figures) != 1:
            raise StaleFence(str(attempt))
        _close(attempt, outcome, summary, error)
        if outcome is Outcome.SUCCEEDED:
            fix_margin(attempt, summary)
        _note_on_boards(attempt, course)
        _free_all(attempt, left_behind)
        wake_on_commit(job.queue.name)
    logger.info("ended as %s", outcome.value, extra=fields_of(attempt))
    return outcome


def _note_on_boards(attempt: Attempt, course: Course) -> None:
    """Boards follow from the attempts and can be made anew from them: no fault of theirs may hold up a job's end."""
    try:
        with transaction.atomic():
            note_run(attempt.pk, course)
            judge_reproductions(attempt.job_id)
    except DatabaseError:  # then the whole end is told again
        raise
    except Exception:
        logger.exception(
            "the run is not on its board; `manage.py rebuild_boards` puts it there", extra=fields_of(attempt)
        )


def lose_attempt(
    attempt: Attempt, reason: str, *, release_devices: bool, left_behind: str = "", only_if_expired: bool = False
) -> State | None:
    """Take a job from an owner that is gone: back into its queue while attempts are left, else lost.

    The fence moves on, so nothing that the old owner still writes is accepted. Returns the job's new state, None
    where somebody else was faster, or the owner was heard from after all. Devices are released only where the caller
    knows that no process is left on them; `left_behind` is as in `finish_attempt`.
    """
    with transaction.atomic():
        job = Job.objects.select_for_update().get(pk=attempt.job_id)
        if only_if_expired and not _expired().select_for_update().filter(pk=attempt.pk).exists():
            return None
        state = _state_after_loss(job, attempt)
        values: dict[str, object] = {"state": state.value, "fence": attempt.fence + 1}
        if state is State.QUEUED:
            values["queued_at"] = job.queued_at  # it keeps its place in the line
        else:
            values |= {"outcome": state.value, "ended_at": Now()}
        owned = Job.objects.filter(pk=job.pk, fence=attempt.fence, state__in=LIVE_STATES)
        if owned.update(**values) != 1:
            return None
        outcome = Outcome.CANCELLED if state is State.CANCELLED else Outcome.LOST
        _close(attempt, outcome, None, ErrorInfo(type="Lost", message=reason))
        _note_on_boards(attempt, [])
        if release_devices:
            _free_all(attempt, left_behind)
        wake_on_commit(job.queue.name)
    logger.warning("taken from its owner, now %s: %s", state.value, reason, extra=fields_of(attempt))
    return state


def _state_after_loss(job: Job, attempt: Attempt) -> State:
    if job.cancel_requested_at:
        return State.CANCELLED
    return State.QUEUED if attempt.number < job.max_attempts else State.LOST


def _close(attempt: Attempt, outcome: Outcome, summary: Summary | None, error: ErrorInfo | None) -> None:
    values: dict[str, object] = {"outcome": outcome.value, "ended_at": Now(), "phase": ""}
    if summary:
        values["summary"] = as_json(summary)
        values |= {name: getattr(summary, name) for name in RANKED_METRICS}
    if error:
        values["error"] = as_json(error)
    if Attempt.objects.filter(pk=attempt.pk, outcome=None).update(**values) != 1:
        raise StaleFence(str(attempt))


def finite_figures(summary: Summary) -> dict[str, float | None]:
    """The ranked figures as a job keeps them: what is not a finite number has no place in an order."""
    values: dict[str, float | None] = {name: getattr(summary, name) for name in RANKED_METRICS}
    return {name: value if value is not None and math.isfinite(value) else None for name, value in values.items()}


def as_json(model: BaseModel) -> Any:
    """Plain values with NaN and infinity as strings; `model_dump` leaves them as floats, which are not JSON."""
    return json.loads(model.model_dump_json())


def _free_all(attempt: Attempt, left_behind: str) -> None:
    """End the leases on all hosts where nothing of the attempt is left; the others end theirs when they are clean."""
    free_devices(attempt, attempt.worker_id, left_behind)
    for worker_id in attempt.nodes.exclude(ended_at=None).values_list("worker", flat=True):
        free_devices(attempt, worker_id)


def free_devices(attempt: Attempt, worker_id: int | None, left_behind: str = "") -> None:
    """End the attempt's leases on one host; where something of it was left there, the devices go into quarantine."""
    devices = Device.objects.filter(attempt=attempt, worker=worker_id)
    for device in devices if left_behind else []:
        quarantine_device(device, left_behind)
    devices.update(attempt=None)


def reap_expired() -> int:
    """Take back every job whose owner has been silent for longer than its lease; returns how many were taken.

    Devices stay leased: whether a process is left on them only their own host can tell, or staff who went to see.
    """
    reason = "The supervisor was not heard from within its lease."
    return sum(
        lose_attempt(attempt, reason, release_devices=False, only_if_expired=True) is not None for attempt in _expired()
    )


def _expired() -> QuerySet[Attempt]:
    return Attempt.objects.filter(outcome=None, lease_expires_at__lt=Now())
