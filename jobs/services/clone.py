"""The same job once more."""

from django.db import transaction

from jobs.contract.spec import TrainSpec
from jobs.models import AuditAction, Job, User
from jobs.selectors.jobs import asked_spec
from jobs.services.audit import note
from jobs.services.submit import submit_job


def clone_job(job: Job, by: User, reason: str = "") -> Job:
    """A new job of the same team and queue that asks for the same. Raises `SpecRefused` as a submission does."""
    spec = TrainSpec.model_validate(asked_spec(job))
    with transaction.atomic():
        tags = [tag.name for tag in job.tags.all()]
        copy = submit_job(owner=by, team=job.team, queue=job.queue, spec=spec, name=job.name, tags=tags)
        note(by, AuditAction.CLONE, job=copy, reason=reason, source=job.pk)
    return copy
