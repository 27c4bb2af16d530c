"""A study's report is shared by a link that cannot be guessed, until it is taken back."""

import secrets

from django.db import transaction

from jobs.models import AuditAction, Study, User
from jobs.services.audit import note
from jobs.services.studies import require_change


def share_study(study: Study, by: User) -> str:
    """The link's token: a new one, or the one that there is."""
    require_change(by, study)
    with transaction.atomic():
        if Study.objects.filter(pk=study.pk, share_token=None).update(share_token=secrets.token_urlsafe(32)):
            note(by, AuditAction.SHARE, study=study)
    study.refresh_from_db()
    return study.share_token or ""


def unshare_study(study: Study, by: User) -> None:
    """Make the link worthless; the next one will be another. Where there is none, nothing changes."""
    require_change(by, study)
    with transaction.atomic():
        shared = Study.objects.filter(pk=study.pk).exclude(share_token=None)
        if shared.update(share_token=None):
            note(by, AuditAction.UNSHARE, study=study)
    study.refresh_from_db()
