"""Sign-in is required everywhere; the few open addresses say so themselves."""

from collections.abc import Callable
from typing import Any

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.http import HttpRequest, HttpResponse, HttpResponseBase


class SignInMiddleware(LoginRequiredMiddleware):
    """Django's login requirement, with the API left to its own check: it answers 401, not a login page."""

    def process_view(
        self, request: HttpRequest, view_func: Callable[..., Any], view_args: Any, view_kwargs: Any
    ) -> HttpResponseBase | None:
        """Send a visitor who is not signed in to the login page."""
        if request.path.startswith("/api/"):
            return None
        response: HttpResponseBase | None = super().process_view(request, view_func, view_args, view_kwargs)
        if response is not None and request.headers.get("HX-Request"):
            # A part of a page was asked for after the session ended: the whole page goes to the login, not its part.
            return HttpResponse(status=401, headers={"HX-Refresh": "true"})
        return response
