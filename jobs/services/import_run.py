"""A run that was made elsewhere comes in as a job that has ended, stamped as imported."""

import hashlib
import math
from pathlib import Path
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from jobs.contract.keys import environment_key, workload_key
from jobs.contract.results import BrokenResult, Result, read_result
from jobs.curves import frames_from_points
from jobs.models import Attempt, Job, Queue, Team, User
from jobs.models.figures import RANKED_METRICS
from jobs.models.job import Origin
from jobs.services.boards import note_run, read_course
from jobs.services.chunks import add_chunk
from jobs.services.compaction import compact
from jobs.services.finish import as_json, finite_figures

EVENTS_PER_CHUNK = 500


def import_run(*, owner: User, team: Team, queue: Queue, path: Path, name: str = "") -> tuple[Job, bool]:
    """The job of a result file, and whether it is new: the same content comes in once per team.

    Raises `BrokenResult` with a sentence where the file is not the whole report of one run.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BrokenResult(f"The file {path} cannot be read: {error.strerror}.") from error
    digest = hashlib.sha256(content).hexdigest()
    known = Job.objects.filter(team=team, imported_sha256=digest).first()
    if known:
        return known, False
    result = read_result(content.splitlines())
    try:
        with transaction.atomic():
            return _store(result, owner=owner, team=team, queue=queue, name=name.strip(), digest=digest), True
    except IntegrityError:  # somebody imported the same file meanwhile
        return Job.objects.get(team=team, imported_sha256=digest), False


def _store(result: Result, *, owner: User, team: Team, queue: Queue, name: str, digest: str) -> Job:
    now, outcome = timezone.now(), result.finished.outcome.value
    job = Job(
        owner=owner,
        team=team,
        queue=queue,
        name=name,
        spec=result.started.spec.model_dump(mode="json"),
        state=outcome,
        outcome=outcome,
        origin=Origin.IMPORTED,
        imported_sha256=digest,
        fence=1,
        queued_at=now,
        ended_at=now,
        **finite_figures(result.finished.summary),
    )
    job.full_clean()
    job.save()
    attempt = Attempt.objects.create(
        job=job,
        number=1,
        fence=1,
        claimed_at=now,
        running_at=now,
        ended_at=now,
        heartbeat_at=now,
        lease_expires_at=now,
        **_as_columns(result),
    )
    for sequence, begin in enumerate(range(0, len(result.points), EVENTS_PER_CHUNK)):
        add_chunk(attempt, sequence, frames_from_points(result.points[begin : begin + EVENTS_PER_CHUNK]))
    compact(attempt)
    job.last_attempt = attempt
    job.save(update_fields=["last_attempt"])
    note_run(attempt.pk, read_course(attempt))
    return job


def _as_columns(result: Result) -> dict[str, Any]:
    started, summary, error = result.started, result.finished.summary, result.finished.error
    # Said in the device's name, so that wherever it is shown it cannot pass for a device of this site; and by way of
    # the environment's key no board ranks it among runs that were measured here.
    device_name = f"{started.device_name} (imported)"
    points = result.points
    return {
        "outcome": result.finished.outcome.value,
        "resolved_spec": started.spec.model_dump(mode="json"),
        "versions": started.versions,
        "hardware": as_json(started.hardware) if started.hardware else None,
        "device_name": device_name,
        "dataset_revision": started.dataset_revision,
        "workload_key": workload_key(started.spec, started.dataset_revision),
        "environment_key": environment_key(device_name, started.versions),
        "findings": [finding.model_dump(mode="json") for finding in result.findings],
        "num_points": sum(len(event.steps) * len(event.series) for event in points),
        "num_flushes": math.ceil(len(points) / EVENTS_PER_CHUNK),
        "last_step": max((step for event in points for step in event.steps), default=0),
        "summary": as_json(summary),
        "error": as_json(error) if error else None,
        **{metric: getattr(summary, metric) for metric in RANKED_METRICS},
    }
