"""Saved views of the runs list and the comparison: kept, renamed, shared, deleted and brought back by whoever may."""

from typing import Any

from django.utils import timezone
from django.utils.translation import gettext

from jobs.models import SavedView, Team, User, ViewPage
from jobs.selectors.saved_views import may_change_view
from jobs.services.errors import NotAllowed, NotPossible

MOST_VIEWS = 200  # of one person


def save_view(
    owner: User, team: Team, name: str, query: str, *, page: str = ViewPage.LIST, is_shared: bool = False
) -> SavedView:
    """Keep a view; raises `NotPossible` where the person has too many, `ValidationError` for a bad name."""
    if SavedView.objects.filter(owner=owner, deleted_at=None).count() >= MOST_VIEWS:
        raise NotPossible(gettext("You have %(max)s saved views already. Delete some first.") % {"max": MOST_VIEWS})
    view = SavedView(owner=owner, team=team, name=" ".join(name.split()), page=page, query=query, is_shared=is_shared)
    view.full_clean()
    view.save()
    return view


def change_view(view: SavedView, by: User, **values: Any) -> SavedView:
    """Rename, share or redefine a view; raises `NotAllowed`."""
    _require(view, by)
    if "name" in values:
        values["name"] = " ".join(values["name"].split())
    for name, value in values.items():
        setattr(view, name, value)
    view.full_clean()
    view.save(update_fields=list(values))
    return view


def delete_view(view: SavedView, by: User) -> None:
    """Take a view off everybody's lists; it can be brought back."""
    _require(view, by)
    SavedView.objects.filter(pk=view.pk, deleted_at=None).update(deleted_at=timezone.now())


def restore_view(view: SavedView, by: User) -> None:
    """Bring back a view that was deleted."""
    _require(view, by)
    SavedView.objects.filter(pk=view.pk).update(deleted_at=None)


def _require(view: SavedView, by: User) -> None:
    if not may_change_view(by, view):
        raise NotAllowed(gettext("This view is not yours. Its owner or staff can change it."))
