"""Who asks, and what they may see."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _

from jobs.models import Job, User
from jobs.selectors.jobs import visible_jobs


def person(request: HttpRequest) -> User:
    """The reader; the sign-in middleware has made sure that there is one."""
    assert isinstance(request.user, User)  # noqa: S101 our own mistake
    return request.user


def visible_job(request: HttpRequest, pk: int) -> Job:
    """A job that the reader may see; 404 for every other number, so that none can be probed for."""
    return get_object_or_404(visible_jobs(person(request)), pk=pk)


P = ParamSpec("P")


def staff_only(
    view: Callable[Concatenate[HttpRequest, P], HttpResponse],
) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    """Let only staff pass; others get a page that says so."""

    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not person(request).is_staff:
            raise PermissionDenied(_("This page is for staff. Ask an admin of your Pitwall if you need it."))
        return view(request, *args, **kwargs)

    return guarded


@login_not_required
def admin_sign_in(request: HttpRequest) -> HttpResponse:
    """Where the administration sends whoever may not enter: to sign in, or to a page that says that it is for staff."""
    if request.user.is_authenticated:
        raise PermissionDenied(_("This page is for staff. Ask an admin of your Pitwall if you need it."))
    return redirect_to_login(request.GET.get("next", "/admin/"))
