"""One form makes one job or study, however often it is sent: a double click, a reload, two requests at once."""

import hashlib
from collections.abc import Callable
from typing import TypeVar

from django.contrib.sessions.backends.base import SessionBase
from django.db import transaction
from django.http import HttpRequest

from jobs.forms.spec_form import SpecForm
from jobs.models import Job, Study, User

Made = TypeVar("Made", Job, Study)

_KEY = "submitted_forms"
_REMEMBERED = 50


def submit_once(
    request: HttpRequest, owner: User, form: SpecForm, kind: type[Made], submit: Callable[[], Made]
) -> tuple[Made, bool]:
    """What the form makes, a job or a study, and whether it is new. The same form with other content makes another.

    The user's row is locked, so that of two requests at once the second finds what the first one made.
    """
    key = f"{kind.__name__}:{_fingerprint(form)}"
    with transaction.atomic():
        User.objects.select_for_update().get(pk=owner.pk)
        made = _stored(request.session).get(key)
        found = kind._default_manager.filter(pk=made, owner=owner).first() if made else None
        if found:
            return found, False
        new = submit()
        newest: list[tuple[str, int]] = list(_stored(request.session).items())[1 - _REMEMBERED :]
        request.session[_KEY] = dict([*newest, (key, new.pk)])
        request.session.save()
    return new, True


def _stored(session: SessionBase) -> dict[str, int]:
    """What the session holds now, not what it held when this request began."""
    stored: dict[str, int] = type(session)(session.session_key).get(_KEY, {})
    return stored


def _fingerprint(form: SpecForm) -> str:
    data = form.cleaned_data
    parts = [
        data["submission"].hex,
        data["job_name"],
        ",".join(data["tags"]),
        str(data["queue"].pk),
        str(data["team"].pk),
    ]
    return hashlib.sha256("\n".join([*parts, form.asks_for]).encode()).hexdigest()[:32]
