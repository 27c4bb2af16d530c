"""A job enters: checked against what the queue's workers can do, stored, and only then announced."""

import logging
from collections.abc import Iterable

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
    now = timezone.now()
    job = Job(
        owner=owner,
        team=team,
        queue=queue,
        spec=spec.model_dump(mode="json"),
        name=name.strip(),
        study=study,
        study_place=study_place,
        priority=queue.default_priority,
        max_attempts=queue.max_attempts,
        queued_at=now,
        order_key=now.timestamp(),
    )
    with transaction.atomic():
        job.full_clean()
        job.save()
        attach_tags(job, tags)
        wake_on_commit(queue.name)
    logger.info("submitted by %s to %s", owner.get_username(), queue.name, extra={"job": job.pk})
    return job
