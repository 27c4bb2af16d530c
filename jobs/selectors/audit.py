"""The audit trail as people read it: who, what in words, on what, why, when."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobs.contract.spec import TrainSpec
from jobs.models import AuditAction, AuditEntry, Job, Search, Study, User
from jobs.selectors.jobs import teams_of
from jobs.selectors.study_words import changes_in_short

PAGE_SIZE = 50

_SENTENCES: dict[str, str | Promise] = {
    AuditAction.CANCEL: _("cancelled it"),
    AuditAction.REQUEUE: _("queued it again"),
    AuditAction.CLONE: _("made it as a copy of #%(source)s"),
    AuditAction.FIT: _("queued it in smaller micro-batches than #%(source)s, whose memory ran out"),
    AuditAction.PRIORITY: _("changed the priority from %(before)s to %(after)s"),
    AuditAction.REORDER: _("moved it from place %(before)s to place %(after)s"),
    AuditAction.MOVE: _("moved it from the queue “%(before)s” to “%(after)s”"),
    AuditAction.TIME_LIMIT: _("changed the time limit from %(before)s to %(after)s"),
    AuditAction.TAGS: _("changed the tags from %(before)s to %(after)s"),
    AuditAction.PAUSE: _("paused it"),
    AuditAction.RESUME: _("resumed it"),
    AuditAction.LIMITS: _("changed its settings: %(changes)s"),
    AuditAction.DRAIN: _("drained it"),
    AuditAction.UNDRAIN: _("let it take jobs again"),
    AuditAction.FORGET: _("took it off the pages"),
    AuditAction.QUARANTINE: _("took it out of service"),
    AuditAction.RELEASE: _("put it back into service"),
    AuditAction.EXTEND: _("extended it by %(runs)s runs"),
    AuditAction.SHARE: _("shared its report by a link"),
    AuditAction.UNSHARE: _("took back the link to its report"),
    AuditAction.BASELINE: _("made %(after)s its baseline instead of %(before)s"),
    AuditAction.STOP: _("stopped it"),
    AuditAction.DROP_POINTS: _("dropped single points of %(runs)s runs older than %(days)s days"),
}


@dataclass(frozen=True)
class AuditLine:
    """One entry and what it says."""

    entry: AuditEntry
    text: str  # goes on after the actor's name


@dataclass(frozen=True)
class AuditPage:
    """One page by key: the next one begins below `older`, None on the last."""

    lines: list[AuditLine]
    older: int | None


def visible_entries(user: User) -> QuerySet[AuditEntry]:
    """What was done to the jobs, studies, boards and searches of the user's teams, newest first; staff see all."""
    entries = AuditEntry.objects.order_by("-pk")
    teams = teams_of(user)
    return (
        entries
        if user.is_staff
        else entries.filter(
            Q(job__team__in=teams) | Q(study__team__in=teams) | Q(board__team__in=teams) | Q(search__team__in=teams)
        )
    )


def history_of(subject: Job | Study | Search) -> list[AuditLine]:
    """What people did to a job, a study or a search, newest first; no more than a page of it."""
    return [audit_line(entry) for entry in subject.audit.all()[:PAGE_SIZE]]


def page_of_entries(entries: QuerySet[AuditEntry], before: int | None = None, limit: int = PAGE_SIZE) -> AuditPage:
    """The newest entries, or with `before` those that are older than that one."""
    if before is not None:
        entries = entries.filter(pk__lt=before)
    rows = list(entries[: limit + 1])
    older = rows[limit - 1].pk if len(rows) > limit else None
    return AuditPage([audit_line(entry) for entry in rows[:limit]], older)


def audit_line(entry: AuditEntry) -> AuditLine:
    """The entry in the reader's language."""
    return AuditLine(entry, str(_SENTENCES[entry.action]) % _readable(entry.detail))


def _readable(detail: dict[str, Any]) -> dict[str, Any]:
    return {name: _in_words(value) for name, value in detail.items()}


def _in_words(value: Any) -> Any:
    if value is None:
        return gettext("none")
    if isinstance(value, dict):
        known = {name: each for name, each in value.items() if name in TrainSpec.model_fields}
        return changes_in_short(known) or gettext("the defaults")
    return f"{value:g}" if isinstance(value, float) else value
