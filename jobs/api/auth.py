"""Who asks: a personal token in `Authorization: Bearer`, or the session of a browser that is signed in."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext
from ninja.errors import AuthenticationError
from ninja.security import HttpBearer, SessionAuth

from jobs.models import User
from jobs.services.errors import NotAllowed
from jobs.services.tokens import user_of_token


class TokenAuth(HttpBearer):
    """A token that is given must be good: a wrong one is never made up for by a session."""

    def authenticate(self, request: HttpRequest, token: str) -> User:
        """The token's user; 401 where it is unknown or revoked."""
        user = user_of_token(token.strip())
        if user is None:
            raise AuthenticationError
        request.user = user
        return user


class BrowserAuth(SessionAuth):
    """The session's user. Whoever is not signed in hears that first, and about CSRF only then."""

    def __call__(self, request: HttpRequest) -> Any:
        """The user, or None; 403 where a write lacks its CSRF token."""
        return super().__call__(request) if request.user.is_authenticated else None


AUTHENTICATION: list[Callable[[HttpRequest], Any]] = [TokenAuth(), BrowserAuth()]


def asker(request: HttpRequest) -> User:
    """The user who passed authentication."""
    assert isinstance(request.user, User), "an endpoint was reached without authentication"  # noqa: S101 our own mistake
    return request.user


def asking_staff(request: HttpRequest) -> User:
    """The user, who is staff; raises `NotAllowed` for everybody else."""
    user = asker(request)
    if not user.is_staff:
        raise NotAllowed(gettext("Only staff may do this."))
    return user
