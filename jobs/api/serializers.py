"""Jobs as JSON: one shape for the API and the command line."""

from datetime import datetime
from typing import Any, Self

from ninja import Schema

from jobs.contract.events import ErrorInfo
from jobs.contract.facts import Hardware
from jobs.contract.findings import Finding
from jobs.contract.metrics import Summary
from jobs.contract.states import Outcome, State
from jobs.messages import translate
from jobs.models import Attempt, Job
from jobs.selectors.curves import series_names
from jobs.selectors.hosts import findings_for
from jobs.selectors.starts import turn_of
from jobs.selectors.waiting import waiting_for


class FindingOut(Schema):
    """A sentence about one field of the spec."""

    field: str
    code: str
    severity: str
    message: str

    @classmethod
    def of(cls, finding: Finding) -> Self:
        """The finding in the reader's language."""
        return cls(field=finding.field, code=finding.code, severity=finding.severity.value, message=translate(finding))


class AttemptOut(Schema):
    """One try at a job."""

    id: int
    number: int
    outcome: Outcome | None
    phase: str
    worker: str | None
    hosts: list[str]  # the worker, then those of the other nodes
    device_name: str
    hardware: Hardware | None  # null until it has started, and for what an older engine told
    versions: dict[str, str]
    claimed_at: datetime
    running_at: datetime | None
    heartbeat_at: datetime
    ended_at: datetime | None
    last_step: int
    num_points: int
    resumed_at_step: int | None  # of the checkpoint that it went on from; its own points begin after it
    resolved_spec: dict[str, Any] | None
    dataset_revision: str
    workload_key: str
    environment_key: str
    summary: Summary
    error: ErrorInfo | None
    warnings: list[FindingOut]

    @classmethod
    def of(cls, attempt: Attempt) -> Self:
        """The attempt as it is stored; its worker should come with it."""
        return cls(
            id=attempt.pk,
            number=attempt.number,
            outcome=Outcome(attempt.outcome) if attempt.outcome else None,
            phase=attempt.phase,
            worker=attempt.worker.hostname if attempt.worker else None,
            hosts=attempt.hostnames,
            device_name=attempt.device_name,
            hardware=Hardware.model_validate(attempt.hardware) if attempt.hardware else None,
            versions=attempt.versions,
            claimed_at=attempt.claimed_at,
            running_at=attempt.running_at,
            heartbeat_at=attempt.heartbeat_at,
            ended_at=attempt.ended_at,
            last_step=attempt.last_step,
            num_points=attempt.num_points,
            resumed_at_step=attempt.resumed_at_step,
            resolved_spec=attempt.resolved_spec,
            dataset_revision=attempt.dataset_revision,
            workload_key=attempt.workload_key,
            environment_key=attempt.environment_key,
            summary=attempt.measured,
            error=ErrorInfo.model_validate(attempt.error) if attempt.error else None,
            warnings=[FindingOut.of(Finding.model_validate(finding)) for finding in attempt.findings],
        )


class JobRow(Schema):
    """A job in a list."""

    id: int
    name: str
    owner: str
    team: str
    queue: str
    priority: int
    tags: list[str]
    origin: str  # submitted, or imported where the run was made elsewhere
    state: State
    outcome: Outcome | None
    spec: dict[str, Any]  # as it was asked for
    resolved_spec: dict[str, Any] | None  # as it ran: every open choice resolved
    device_name: str
    summary: Summary  # of the last attempt; all null until it has ended
    cancel_requested_at: datetime | None
    created_at: datetime
    queued_at: datetime
    ended_at: datetime | None

    @classmethod
    def of(cls, job: Job) -> Self:
        """The job as `visible_jobs` reads it."""
        return cls(**_row_values(job))


class JobOut(JobRow):
    """A job with all there is to know about it."""

    waiting_for: str  # a sentence while it is queued, else empty
    place: int | None  # in its queue's line, from 1; null where it does not wait
    starts_in_s: float | None  # estimated from measured step times; null where that cannot be told
    cancel_reason: str
    smaller_of: int | None  # the job whose memory ran out, where this one does its work in smaller micro-batches
    smaller: int | None  # the job that was queued so instead of this one
    series: list[str]  # the names under which its curves can be read
    attempts: list[AttemptOut]
    warnings: list[FindingOut]

    @classmethod
    def of(cls, job: Job) -> Self:
        """The job with its attempts, oldest first; a handful of queries."""
        rows = job.attempts.select_related("worker").prefetch_related("nodes__worker").order_by("number")
        attempts = [AttemptOut.of(attempt) for attempt in rows]
        turn = turn_of(job)
        return cls(
            **_row_values(job),
            waiting_for=waiting_for(job),
            place=turn.place if turn else None,
            starts_in_s=turn.starts_in_s if turn else None,
            cancel_reason=job.cancel_reason,
            smaller_of=job.smaller_of_id,
            smaller=Job.objects.filter(smaller_of=job.pk).values_list("pk", flat=True).first(),
            series=series_names(job.last_attempt) if job.last_attempt else [],
            attempts=attempts,
            warnings=attempts[-1].warnings if attempts else _warnings_ahead(job),
        )


def _warnings_ahead(job: Job) -> list[FindingOut]:
    """What the workers say to a job that none of them has started yet."""
    return [FindingOut.of(finding) for finding in findings_for(job.train_spec, job.queue)]


def _row_values(job: Job) -> dict[str, Any]:
    attempt = job.last_attempt
    return {
        "id": job.pk,
        "name": job.name,
        "owner": job.owner.get_username(),
        "team": job.team.name,
        "queue": job.queue.name,
        "priority": job.priority,
        "tags": job.tag_names(),
        "origin": job.origin,
        "state": State(job.state),
        "outcome": Outcome(job.outcome) if job.outcome else None,
        "spec": job.spec,
        "resolved_spec": attempt.resolved_spec if attempt else None,
        "device_name": attempt.device_name if attempt else "",
        "summary": attempt.measured if attempt else Summary(),
        "cancel_requested_at": job.cancel_requested_at,
        "created_at": job.created_at,
        "queued_at": job.queued_at,
        "ended_at": job.ended_at,
    }
