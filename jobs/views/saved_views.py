"""Saved views of the runs list: opened by a link that a colleague can follow, kept and changed from the list's page."""

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from jobs.forms import RunListAddress, ViewForm
from jobs.models import SavedView
from jobs.selectors.saved_views import known_views, visible_views
from jobs.services.errors import NotAllowed, NotPossible
from jobs.services.saved_views import change_view, delete_view, restore_view, save_view
from jobs.views.access import person
from jobs.views.doing import Undo, say_done


@require_GET
def view_open(request: HttpRequest, pk: int) -> HttpResponse:
    """The list as the view keeps it."""
    return redirect(_address(get_object_or_404(visible_views(person(request)), pk=pk)))


@require_POST
def view_save(request: HttpRequest) -> HttpResponse:
    """Keep the list's address under a name."""
    user, form = person(request), ViewForm(request.POST, user=person(request))
    query = _clean(request.POST.get("query", ""))
    if not form.is_valid():
        messages.error(request, " ".join(str(text) for texts in form.errors.values() for text in texts))
        return redirect(f"{reverse('job-list')}?{query}")
    data = form.cleaned_data
    try:
        view = save_view(user, data["team"], data["name"], query, is_shared=data["is_shared"])
    except (NotPossible, ValidationError) as error:
        messages.error(request, _sentence(error))
        return redirect(f"{reverse('job-list')}?{query}")
    messages.success(request, gettext("The view “%(name)s” is kept.") % {"name": view.name})
    return redirect(_address(view))


@require_POST
def view_change(request: HttpRequest, pk: int) -> HttpResponse:
    """Another name, another address, shared or not: what the form sends."""
    view = _known(request, pk)
    values: dict[str, object] = {name: request.POST[name] for name in ("name",) if request.POST.get(name, "").strip()}
    if "query" in request.POST:
        values["query"] = _clean(request.POST["query"])
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
    return redirect("job-list")


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
    return f"{reverse('job-list')}?{view.query}{'&' if view.query else ''}view={view.pk}"


def _clean(text: str) -> str:
    """Only what belongs into the list's address."""
    return RunListAddress.from_query(QueryDict(text[:4000])).stored


def _sentence(error: Exception) -> str:
    return " ".join(error.messages) if isinstance(error, ValidationError) else str(error)
