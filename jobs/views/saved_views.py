"""Saved views of a page: opened by a link that a colleague can follow, kept and changed from the page itself."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from jobs.forms import ViewForm, stored_address
from jobs.models import SavedView, User, ViewPage
from jobs.selectors.saved_views import known_views, may_change_view, visible_views
from jobs.services.errors import NotAllowed, NotPossible
from jobs.services.saved_views import change_view, delete_view, restore_view, save_view
from jobs.views.access import person
from jobs.views.doing import Undo, say_done

_ADDRESSES = {ViewPage.LIST: "job-list", ViewPage.COMPARISON: "compare"}


def views_menu(user: User, page: ViewPage, opened_id: int | None, stored: str) -> dict[str, Any]:
    """What the menu of a page's views shows; `stored` is the page's own address, as a view would keep it."""
    views = list(visible_views(user).filter(page=page))
    opened = next((view for view in views if view.pk == opened_id), None)
    return {
        "view_page": page.value,
        "views": views,
        "opened": opened,
        "stored": stored,
        "may_change_opened": opened is not None and may_change_view(user, opened),
        "is_opened_changed": opened is not None and opened.query != stored,
        "own_teams": list(user.teams.all()),
    }


@require_GET
def view_open(request: HttpRequest, pk: int) -> HttpResponse:
    """The page as the view keeps it."""
    return redirect(_address(get_object_or_404(visible_views(person(request)), pk=pk)))


@require_POST
def view_save(request: HttpRequest) -> HttpResponse:
    """Keep a page's address under a name."""
    user, form = person(request), ViewForm(request.POST, user=person(request))
    page = ViewPage.COMPARISON if request.POST.get("page") == ViewPage.COMPARISON else ViewPage.LIST
    query = stored_address(page, request.POST.get("query", ""))
    here = f"{reverse(_ADDRESSES[page])}?{query}"
    if not form.is_valid():
        messages.error(request, " ".join(str(text) for texts in form.errors.values() for text in texts))
        return redirect(here)
    data = form.cleaned_data
    try:
        view = save_view(user, data["team"], data["name"], query, page=page, is_shared=data["is_shared"])
    except (NotPossible, ValidationError) as error:
        messages.error(request, _sentence(error))
        return redirect(here)
    messages.success(request, gettext("The view “%(name)s” is kept.") % {"name": view.name})
    return redirect(_address(view))


@require_POST
def view_change(request: HttpRequest, pk: int) -> HttpResponse:
    """Another name, another address, shared or not: what the form sends."""
    view = _known(request, pk)
    values: dict[str, object] = {name: request.POST[name] for name in ("name",) if request.POST.get(name, "").strip()}
    if "query" in request.POST:
        values["query"] = stored_address(view.page, request.POST["query"])
    if "is_shared" in request.POST:
        values["is_shared"] = request.POST["is_shared"] == "yes"
    try:
        change_view(view, person(request), **values)
    except (NotAllowed, ValidationError) as error:
        messages.error(request, _sentence(error))
    else:
        messages.success(request, gettext("The view “%(name)s” is changed.") % {"name": view.name})
    return redirect(_address(_known(request, pk)))


@require_POST
def view_delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Take a view away, with a way back."""
    view = _known(request, pk)
    try:
        delete_view(view, person(request))
    except NotAllowed as error:
        messages.error(request, str(error))
        return redirect(_address(view))
    say_done(request, gettext("The view “%(name)s” is deleted.") % {"name": view.name}, _restoring(view))
    return redirect(_ADDRESSES[ViewPage(view.page)])


@require_POST
def view_restore(request: HttpRequest, pk: int) -> HttpResponse:
    """Bring a deleted view back."""
    view = _known(request, pk)
    try:
        restore_view(view, person(request))
    except NotAllowed as error:
        messages.error(request, str(error))
    return redirect(_address(view))


def _known(request: HttpRequest, pk: int) -> SavedView:
    return get_object_or_404(known_views(person(request)), pk=pk)


def _restoring(view: SavedView) -> Undo:
    return Undo(reverse("view-restore", args=[view.pk]))


def _address(view: SavedView) -> str:
    page = reverse(_ADDRESSES[ViewPage(view.page)])
    return f"{page}?{view.query}{'&' if view.query else ''}view={view.pk}"


def _sentence(error: Exception) -> str:
    return " ".join(error.messages) if isinstance(error, ValidationError) else str(error)
