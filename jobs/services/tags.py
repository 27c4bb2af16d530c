"""Tags of a job: put on, taken off, replaced; whoever did it stands in the audit trail."""

import re
from collections.abc import Iterable, Sequence

from django.db import transaction
from django.utils.translation import gettext

from jobs.models import AuditAction, Job, JobTag, TeamTag, User
from jobs.models.tag import MAX_TAG_LENGTH
from jobs.services.audit import note
from jobs.services.errors import NotPossible

MOST_TAGS = 20


def clean_tags(names: Iterable[str]) -> list[str]:
    """The labels without doubles and needless spaces, sorted; raises `NotPossible` with a sentence for a bad one."""
    cleaned = {" ".join(name.split()) for name in names} - {""}
    for name in cleaned:
        if len(name) > MAX_TAG_LENGTH:
            raise NotPossible(gettext("A tag has at most %(max)s characters.") % {"max": MAX_TAG_LENGTH})
        if re.search(r'[",\x00-\x1f]', name):
            raise NotPossible(gettext("A tag has no commas and no quotation marks."))
    if len(cleaned) > MOST_TAGS:
        raise NotPossible(gettext("A job has at most %(max)s tags.") % {"max": MOST_TAGS})
    return sorted(cleaned)


def split_tags(text: str) -> list[str]:
    """The labels in a text that separates them by commas."""
    return [name for name in text.split(",") if name.strip()]


def attach_tags(jobs: Sequence[Job], names: Iterable[str]) -> None:
    """The labels of jobs of one team that are just being made."""
    _put_on(jobs, clean_tags(names))


def add_tags(job: Job, by: User, names: Iterable[str], reason: str = "") -> None:
    """Put more labels on a job."""
    _change(job, by, reason, add=clean_tags(names))


def remove_tags(job: Job, by: User, names: Iterable[str], reason: str = "") -> None:
    """Take labels off a job; those that it does not have are no matter."""
    _change(job, by, reason, remove=clean_tags(names))


def replace_tags(job: Job, by: User, names: Iterable[str], reason: str = "") -> None:
    """Let a job have these labels and no others."""
    wanted = clean_tags(names)
    _change(job, by, reason, add=wanted, keep_only=wanted)


def _change(
    job: Job,
    by: User,
    reason: str,
    *,
    add: Iterable[str] = (),
    remove: Iterable[str] = (),
    keep_only: Iterable[str] | None = None,
) -> None:
    with transaction.atomic():
        Job.objects.select_for_update().get(pk=job.pk)  # one after another
        before = list(job.tags.order_by("name").values_list("name", flat=True))
        kept = set(before) if keep_only is None else set(before) & set(keep_only)
        after = clean_tags((kept | set(add)) - set(remove))
        if after == before:
            return
        job.tags.exclude(name__in=after).delete()
        _put_on([job], [name for name in after if name not in before])
        _forget_unused(job, [name for name in before if name not in after])
        note(
            by,
            AuditAction.TAGS,
            job=job,
            reason=reason,
            before=", ".join(before) or None,
            after=", ".join(after) or None,
        )


def _put_on(jobs: Sequence[Job], names: Sequence[str]) -> None:
    if not jobs or not names:
        return
    JobTag.objects.bulk_create([JobTag(job=job, name=name) for job in jobs for name in names])
    team = jobs[0].team_id
    TeamTag.objects.bulk_create([TeamTag(team_id=team, name=name) for name in names], ignore_conflicts=True)


def _forget_unused(job: Job, names: Iterable[str]) -> None:
    """The team's menu no longer offers what no job of it has."""
    for name in names:
        if not JobTag.objects.filter(name=name, job__team=job.team_id).exists():
            TeamTag.objects.filter(team=job.team_id, name=name).delete()
