"""Personal API tokens: shown once, stored as a hash, revocable."""

import hashlib
import secrets
from datetime import timedelta

from django.utils import timezone

from jobs.models import ApiToken, User

_NOTED_EVERY = timedelta(minutes=1)


def create_token(user: User, name: str = "") -> tuple[ApiToken, str]:
    """A new token's row and its secret, which is not stored and cannot be shown again."""
    secret = f"pw_{secrets.token_urlsafe(32)}"
    token = ApiToken(user=user, name=name.strip(), prefix=secret[:8], digest=_digest(secret))
    token.full_clean()
    token.save()
    return token, secret


def user_of_token(secret: str) -> User | None:
    """The active user whose token this is; None where it is unknown or revoked."""
    token = (
        ApiToken.objects.filter(digest=_digest(secret), revoked_at=None, user__is_active=True)
        .select_related("user")
        .first()
    )
    if token is None:
        return None
    _note_use(token)
    return token.user


def _note_use(token: ApiToken) -> None:
    """Once a minute is enough: a script that polls must not write with every read."""
    now = timezone.now()
    if token.last_used_at is None or now - token.last_used_at > _NOTED_EVERY:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)


def revoke_token(token: ApiToken) -> None:
    """Make the token worthless; a second time changes nothing."""
    ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now())


def _digest(secret: str) -> str:
    """SHA-256 suffices: the secret is 32 random bytes, so there is nothing to guess at."""
    return hashlib.sha256(secret.encode()).hexdigest()
