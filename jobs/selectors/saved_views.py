"""Which saved views a person may use and change."""

from django.db.models import Q, QuerySet

from jobs.models import SavedView, User
from jobs.selectors.jobs import teams_of


def known_views(user: User) -> QuerySet[SavedView]:
    """The person's own views and those that are shared with a team of theirs, deleted ones too."""
    return SavedView.objects.filter(Q(owner=user) | Q(is_shared=True, team__in=teams_of(user))).select_related(
        "owner", "team"
    )


def visible_views(user: User) -> QuerySet[SavedView]:
    """Those of them that are in use."""
    return known_views(user).filter(deleted_at=None)


def may_change_view(user: User, view: SavedView) -> bool:
    """Whether the person may rename, share or delete a view: its owner, and staff where it is shared."""
    return view.owner_id == user.pk or (user.is_staff and view.is_shared)
