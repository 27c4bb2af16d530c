"""What a live attempt reports is stored, as long as it still owns its job."""

from datetime import timedelta

from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Greatest, Now

from jobs.contract.events import Artifact, Points, Started
from jobs.contract.findings import Finding
from jobs.contract.keys import environment_key, workload_key
from jobs.contract.states import State
from jobs.curves import Frame, count_points, frames_from_points, last_step_of
from jobs.models import Attempt, Job
from jobs.services.chunks import add_chunk
from jobs.services.errors import StaleFence
from jobs.timings import timings


def _update_owned(attempt: Attempt, **values: object) -> None:
    """Update the attempt's row if it still owns its job; raises `StaleFence` otherwise.

    It owns it as long as it has no outcome: whoever moves the job's fence closes the attempt in the same transaction.
    The guard is on this row alone, for a condition on the job's row could be true of a version of it that is gone by
    the time the update lands (PostgreSQL checks only the updated row again).
    """
    if _owned(attempt).update(**values) != 1:
        raise StaleFence(str(attempt))


def _owned(attempt: Attempt) -> QuerySet[Attempt]:
    return Attempt.objects.filter(pk=attempt.pk, fence=attempt.fence, outcome=None)


def heartbeat(attempt: Attempt) -> None:
    """Renew the lease."""
    _update_owned(attempt, heartbeat_at=Now(), lease_expires_at=Now() + timedelta(seconds=timings().lease_s))


def record_supervisor(attempt: Attempt, pid: int, tree_tag: str) -> None:
    """Note which process supervises the attempt, and the tag of all processes that it starts."""
    _update_owned(attempt, supervisor_pid=pid, tree_tag=tree_tag)


def record_resumed(attempt: Attempt, origin: Attempt, step: int) -> None:
    """The attempt goes on from a checkpoint that an earlier one left: its own points begin after that step."""
    _update_owned(attempt, resumed_from=origin, resumed_at_step=step)


def record_started(attempt: Attempt, event: Started) -> None:
    """The engine accepted the job: it runs from now on, and its keys are known."""
    with transaction.atomic():
        # The job's row first, as everywhere, so that two transactions never wait for each other.
        Job.objects.filter(pk=attempt.job_id, fence=attempt.fence, state=State.STARTING).update(state=State.RUNNING)
        _update_owned(
            attempt,
            running_at=Now(),
            resolved_spec=event.spec.model_dump(mode="json"),
            versions=event.versions,
            hardware=event.hardware.model_dump(mode="json") if event.hardware else None,
            device_name=event.device_name,
            dataset_revision=event.dataset_revision,
            workload_key=workload_key(event.spec, event.dataset_revision),
            environment_key=environment_key(event.device_name, event.versions),
        )


def record_phase(attempt: Attempt, name: str) -> None:
    """What the engine is busy with now."""
    _update_owned(attempt, phase=name)


def record_finding(attempt: Attempt, finding: Finding) -> None:
    """A warning of the engine's is kept with the attempt; told again after a lost answer, it is kept once."""
    told = finding.model_dump(mode="json")
    findings = [*attempt.findings, told] if told not in attempt.findings else attempt.findings
    _update_owned(attempt, findings=findings)
    attempt.findings = findings


def record_artifact(attempt: Attempt, artifact: Artifact) -> None:
    """A file in the attempt's artifacts folder; written again, it replaces what was told before."""
    others = [known for known in attempt.artifacts if known["file"] != artifact.file]
    artifacts = [*others, artifact.model_dump(mode="json", exclude={"type"})]
    _update_owned(attempt, artifacts=artifacts)
    attempt.artifacts = artifacts


def record_points(attempt: Attempt, sequence: int, events: list[Points]) -> None:
    """Store one flush of points. `sequence` counts the attempt's flushes from 0.

    Told again, because the answer to the first time was lost on its way, it changes nothing.
    """
    frames = frames_from_points(events)
    with transaction.atomic():
        if _count_flush(attempt, sequence, frames):
            add_chunk(attempt, sequence, frames)


def _count_flush(attempt: Attempt, sequence: int, frames: list[Frame]) -> bool:
    """Whether the flush is new, and then it counts from now on; raises `StaleFence` as every write does.

    The number of flushes is part of the guard: of two who tell the same one, only one finds it as it was.
    """
    counted = _owned(attempt).filter(num_flushes=sequence)
    num_updated = counted.update(
        num_flushes=sequence + 1,
        num_points=F("num_points") + count_points(frames),
        last_step=Greatest("last_step", last_step_of(frames)),
    )
    if num_updated == 0 and not Attempt.objects.filter(pk=attempt.pk, num_flushes__gt=sequence).exists():
        raise StaleFence(str(attempt))
    return num_updated == 1
