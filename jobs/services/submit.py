"""A job enters: checked against what the queue's workers can do, stored, and only then announced."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from jobs.contract.rules import refusals
from jobs.contract.spec import TrainSpec
from jobs.models import Job, Queue, Study, Team, User
from jobs.selectors.hosts import findings_for
from jobs.services.errors import SpecRefused
from jobs.services.tags import attach_tags
from jobs.services.wake import wake_on_commit

logger = logging.getLogger(__name__)

_STEP_S = 1e-4  # between the keys of jobs that enter together: room for others to be placed between them


def submit_job(
    *,
    owner: User,
    team: Team,
    queue: Queue,
    spec: TrainSpec,
    name: str = "",
    tags: Iterable[str] = (),
    study: Study | None = None,
    study_place: int | None = None,
) -> Job:
    """Queue one job, of a study where one is given.

    Raises `SpecRefused` where no worker of the queue could run it, `NotPossible` for a bad tag.
    """
    refused = refusals(findings_for(spec, queue))
    if refused:
        raise SpecRefused(refused)
    runs = [Run(spec, name, study_place)]
    return store_jobs(runs, tags, owner=owner, team=team, queue=queue, study=study)[0]


@dataclass(frozen=True)
class Run:
    """What one of several jobs that enter together has for itself."""

    spec: TrainSpec
    name: str
    study_place: int | None = None


def store_jobs(
    runs: Sequence[Run], tags: Iterable[str], *, owner: User, team: Team, queue: Queue, study: Study | None
) -> list[Job]:
    """Queue the runs, which the rules were asked about before, in this order; they differ in nothing else.

    What they have in common is validated with the first one, so that hundreds of a study enter in one go.
    """
    now = timezone.now()
    jobs = [
        Job(
            owner=owner,
            team=team,
            queue=queue,
            spec=run.spec.model_dump(mode="json"),
            name=run.name.strip(),
            study=study,
            study_place=run.study_place,
            priority=queue.default_priority,
            max_attempts=queue.max_attempts,
            queued_at=now,
            order_key=now.timestamp() + place * _STEP_S,
        )
        for place, run in enumerate(runs)
    ]
    with transaction.atomic():
        for job in jobs[:1]:
            job.full_clean()
        Job.objects.bulk_create(jobs)
        attach_tags(jobs, tags)
        wake_on_commit(queue.name, len(jobs))
    for job in jobs:
        logger.info("submitted by %s to %s", owner.get_username(), queue.name, extra={"job": job.pk})
    return jobs
