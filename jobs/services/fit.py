"""A job whose memory ran out, once more in smaller micro-batches: the same global batch, the same work."""

from django.db import transaction
from django.utils.translation import gettext

from jobs.models import AuditAction, Job, User
from jobs.selectors.proposals import proposal_for
from jobs.services.audit import note
from jobs.services.errors import NotPossible
from jobs.services.submit import submit_job


def queue_proposal(job: Job, by: User, reason: str = "") -> Job:
    """A new job of the person's that asks for what was proposed; the one that is there already where there is one.

    Raises `NotPossible` where nothing is proposed, `SpecRefused` as a submission does.
    """
    with transaction.atomic():
        asked = (
            Job.objects.select_for_update(of=("self",)).select_related("team", "queue", "last_attempt").get(pk=job.pk)
        )
        proposal = proposal_for(asked)
        if proposal is None:
            raise NotPossible(gettext("Nothing smaller is known to run instead of job %(job)s.") % {"job": job.pk})
        if proposal.job:
            return proposal.job
        tags = asked.tag_names()
        made = submit_job(owner=by, team=asked.team, queue=asked.queue, spec=proposal.spec, name=asked.name, tags=tags)
        made.smaller_of = asked
        made.save(update_fields=["smaller_of"])
        note(by, AuditAction.FIT, job=made, reason=reason, source=asked.pk)
    return made
