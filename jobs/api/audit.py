"""The audit trail."""

from datetime import datetime
from typing import Any

import ninja
from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from jobs.api.auth import asker
from jobs.api.errors import ErrorsOut
from jobs.api.queries import Query
from jobs.models import AuditAction
from jobs.selectors.audit import AuditLine, page_of_entries, visible_entries

router = Router(tags=["audit"])

_MAX_ID = 2**63 - 1


class AuditQuery(Query):
    """Which entries."""

    job: int | None = Field(None, ge=1, le=_MAX_ID, description="Only what was done to this job.")
    study: int | None = Field(None, ge=1, le=_MAX_ID, description="Only what was done to this study as a whole.")
    board: int | None = Field(None, ge=1, le=_MAX_ID, description="Only what was done to this leaderboard.")
    search: int | None = Field(None, ge=1, le=_MAX_ID, description="Only what was done to this search.")
    queue: str | None = Field(None, max_length=50, description="Only what was done to this queue and its jobs.")
    worker: int | None = Field(None, ge=1, le=_MAX_ID, description="Only what was done to this worker and its devices.")
    actor: str | None = Field(None, max_length=150, description="Only what this person did.")
    action: AuditAction | None = Field(None, description="Only acts of this kind.")
    before: int | None = Field(None, ge=1, le=_MAX_ID, description="`next_before` of the page before.")
    limit: int = Field(50, ge=1, le=200, description="Entries per page.")


class AuditEntryOut(Schema):
    """One act of one person; `text` says it in words, `detail` what it was and what it became."""

    id: int
    at: datetime
    actor: str  # empty where Pitwall did it itself
    action: str
    subject: str
    text: str
    reason: str
    job: int | None
    study: int | None
    board: int | None
    search: int | None
    queue: str | None
    worker: int | None
    detail: dict[str, Any]

    @classmethod
    def of(cls, line: AuditLine) -> "AuditEntryOut":
        """The entry; its queue should come with it."""
        entry = line.entry
        return cls(
            id=entry.pk,
            at=entry.at,
            actor=entry.actor_name,
            action=entry.action,
            subject=entry.subject,
            text=line.text,
            reason=entry.reason,
            job=entry.job_id,
            study=entry.study_id,
            board=entry.board_id,
            search=entry.search_id,
            queue=entry.queue.name if entry.queue else None,
            worker=entry.worker_id,
            detail=entry.detail,
        )


class AuditPageOut(Schema):
    """One page, newest first; `next_before` is null on the last one."""

    entries: list[AuditEntryOut]
    next_before: int | None


@router.get("/audit", response={200: AuditPageOut, 401: ErrorsOut, 422: ErrorsOut}, summary="See who did what")
def audit(request: HttpRequest, query: ninja.Query[AuditQuery]) -> AuditPageOut:
    """What was done to your teams' jobs; for staff, everything."""
    asked: AuditQuery = query
    wanted = {
        "job_id": asked.job,
        "study_id": asked.study,
        "board_id": asked.board,
        "search_id": asked.search,
        "queue__name": asked.queue,
        "worker_id": asked.worker,
        "actor_name": asked.actor,
        "action": asked.action,
    }
    entries = visible_entries(asker(request)).select_related("queue")
    entries = entries.filter(**{name: value for name, value in wanted.items() if value is not None})
    page = page_of_entries(entries, asked.before, asked.limit)
    return AuditPageOut(entries=[AuditEntryOut.of(line) for line in page.lines], next_before=page.older)
