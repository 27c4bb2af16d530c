"""Doing what a person asked for: the service's refusal becomes a sentence, and the page they came from comes back."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme

from jobs.services.errors import NotPossible


@dataclass(frozen=True)
class Undo:
    """The way back from what was just done: a form of one button."""

    url: str
    fields: dict[str, str] = field(default_factory=dict)


def attempt_to(request: HttpRequest, action: Callable[[], object], done: str, undo: Undo | None = None) -> None:
    """Do it and say `done`, or say why it was not possible."""
    try:
        action()
    except NotPossible as error:
        messages.error(request, str(error))
    else:
        say_done(request, done, undo)


def say_done(request: HttpRequest, done: str, undo: Undo | None = None) -> None:
    """A sentence, and where there is one the way back, which travels with it."""
    way_back = json.dumps({"url": undo.url, "fields": undo.fields | {"next": _own_page(request)}}) if undo else ""
    messages.success(request, done, extra_tags=way_back)


def back(request: HttpRequest, otherwise: str) -> HttpResponse:
    """To the page that the form names as its own; to `otherwise` where it names none of ours."""
    return redirect(_own_page(request) or otherwise)


def _own_page(request: HttpRequest) -> str:
    target = request.POST.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure())
    return target if is_ours and target.startswith("/") else ""
