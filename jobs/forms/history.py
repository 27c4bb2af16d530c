"""Which part of the audit trail a page shows: read from the address, so that a link holds it."""

from dataclasses import dataclass

from django.db.models import Q, QuerySet
from django.http import QueryDict

from jobs.models import AuditAction, AuditEntry


@dataclass(frozen=True)
class HistoryFilter:
    """What the trail is narrowed to; empty means everything."""

    text: str = ""
    action: str = ""
    before: int | None = None  # the page holds entries with smaller ids

    @classmethod
    def from_query(cls, query: QueryDict) -> "HistoryFilter":
        """Read the address; what is not understood is left out."""
        action, before = query.get("action", ""), query.get("before", "")
        return cls(
            text=query.get("q", "").strip().replace("\0", "")[:200],
            action=action if action in AuditAction else "",
            before=int(before) if before.isascii() and before.isdigit() and len(before) < 19 else None,
        )

    @property
    def is_set(self) -> bool:
        """Whether anything is narrowed down, pages aside."""
        return bool(self.text or self.action)

    def apply(self, entries: QuerySet[AuditEntry]) -> QuerySet[AuditEntry]:
        """The entries that match, pages aside."""
        if self.action:
            entries = entries.filter(action=self.action)
        return entries.filter(_matches(self.text)) if self.text else entries


def _matches(text: str) -> Q:
    number = text.removeprefix("#")
    if text.startswith("#") and number.isascii() and number.isdigit() and len(number) < 19:
        return Q(job=int(number))
    return (
        Q(actor_name__icontains=text)
        | Q(subject__icontains=text)
        | Q(reason__icontains=text)
        | Q(queue__name=text)
        | Q(worker__hostname=text)
    )
