"""The same job once more."""

from django.db import transaction
from django.utils.translation import gettext

from jobs.contract.errors import InvalidSpec
from jobs.contract.spec import TrainSpec, parse_spec
from jobs.messages import translate_with_field
from jobs.models import AuditAction, Job, User
from jobs.selectors.jobs import asked_spec
from jobs.services.audit import note
from jobs.services.errors import NotPossible
from jobs.services.submit import submit_job


def spec_to_repeat(job: Job) -> TrainSpec:
    """What a job asked for, to be asked for again; raises `NotPossible` where a value of it is allowed no more."""
    try:
        return parse_spec(asked_spec(job))
    except InvalidSpec as error:
        raise NotPossible(
            gettext("What job %(job)s asked for cannot run any more: %(why)s")
            % {"job": job.pk, "why": " ".join(map(translate_with_field, error.findings))}
        ) from error


def clone_job(job: Job, by: User, reason: str = "") -> Job:
    """A new job of the same team and queue that asks for the same. Raises `NotPossible` where it cannot be
    read any more, `SpecRefused` as a submission does.
    """
    spec = spec_to_repeat(job)
    with transaction.atomic():
        tags = job.tag_names()
        copy = submit_job(owner=by, team=job.team, queue=job.queue, spec=spec, name=job.name, tags=tags)
        note(by, AuditAction.CLONE, job=copy, reason=reason, source=job.pk)
    return copy
