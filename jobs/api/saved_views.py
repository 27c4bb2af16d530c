"""Saved views of the list of jobs and of comparisons."""

from datetime import datetime
from urllib.parse import parse_qs

from django.http import HttpRequest, QueryDict
from django.shortcuts import get_object_or_404
from ninja import Router, Schema, Status
from pydantic import ConfigDict, Field

from jobs.api.auth import asker
from jobs.api.choices import choose_team
from jobs.api.errors import ErrorsOut
from jobs.forms import RunListAddress, stored_address
from jobs.models import SavedView, ViewPage
from jobs.selectors.saved_views import visible_views
from jobs.services.saved_views import change_view, delete_view, save_view

router = Router(tags=["views"])

_REFUSED: dict[int, type[Schema]] = {401: ErrorsOut, 403: ErrorsOut, 404: ErrorsOut, 409: ErrorsOut, 422: ErrorsOut}
_QUERY = (
    "The page's address without its path. Of the list: `q` (the text query), `sort` and `columns`; of the comparison "
    "`jobs`, `series`, `x`, `group`, `baseline` and whatever else its address says."
)


class ViewIn(Schema):
    """A new view."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=100)
    page: ViewPage = Field(ViewPage.LIST, description="The page that it shows.")
    query: str = Field("", max_length=4000, description=_QUERY)
    team: str = Field("", description="One of your teams; your first one where it is left out.")
    is_shared: bool = Field(False, description="Whether the team sees it.")


class ViewChangeIn(Schema):
    """What to change; what is left out stays."""

    model_config = ConfigDict(extra="forbid")

    name: str | None = Field(None, min_length=1, max_length=100)
    query: str | None = Field(None, max_length=4000, description=_QUERY)
    is_shared: bool | None = None


class ViewOut(Schema):
    """A view; of the list, `q` and `order_by` are what `GET /jobs` takes to list the same."""

    id: int
    name: str
    owner: str
    team: str
    is_shared: bool
    page: ViewPage
    query: str
    q: str
    order_by: str
    columns: list[str]
    created_at: datetime

    @classmethod
    def of(cls, view: SavedView) -> "ViewOut":
        """The view with its owner and team."""
        address = RunListAddress.from_query(QueryDict(view.query))
        return cls(
            id=view.pk,
            name=view.name,
            owner=view.owner.get_username(),
            team=view.team.name,
            is_shared=view.is_shared,
            page=ViewPage(view.page),
            query=view.query,
            q=parse_qs(view.query).get("q", [""])[0],
            order_by=str(address.order),
            columns=list(address.columns),
            created_at=view.created_at,
        )


@router.get("/views", response={200: list[ViewOut], 401: ErrorsOut}, summary="List saved views")
def list_views(request: HttpRequest) -> list[ViewOut]:
    """Yours, and those that are shared with a team of yours."""
    return [ViewOut.of(view) for view in visible_views(asker(request))]


@router.post("/views", response={201: ViewOut} | _REFUSED, summary="Save a view")
def create_view(request: HttpRequest, body: ViewIn) -> Status[ViewOut]:
    """Keep what a page shows under a name."""
    user = asker(request)
    team, query = choose_team(user, body.team), stored_address(body.page, body.query)
    return Status(201, ViewOut.of(save_view(user, team, body.name, query, page=body.page, is_shared=body.is_shared)))


@router.get("/views/{int:view_id}", response={200: ViewOut} | _REFUSED, summary="Look at a saved view")
def get_view(request: HttpRequest, view_id: int) -> ViewOut:
    """A view of yours or of your team's."""
    return ViewOut.of(_visible_view(request, view_id))


@router.patch("/views/{int:view_id}", response={200: ViewOut} | _REFUSED, summary="Change a saved view")
def patch_view(request: HttpRequest, view_id: int, body: ViewChangeIn) -> ViewOut:
    """Rename it, share it, or let it show something else. 403 where it is not yours."""
    view, values = _visible_view(request, view_id), body.model_dump(exclude_none=True)
    if "query" in values:
        values["query"] = stored_address(view.page, values["query"])
    return ViewOut.of(change_view(view, asker(request), **values))


@router.delete("/views/{int:view_id}", response={204: None} | _REFUSED, summary="Delete a saved view")
def remove_view(request: HttpRequest, view_id: int) -> Status[None]:
    """Take it off everybody's lists. 403 where it is not yours."""
    delete_view(_visible_view(request, view_id), asker(request))
    return Status(204, None)


def _visible_view(request: HttpRequest, view_id: int) -> SavedView:
    return get_object_or_404(visible_views(asker(request)), pk=view_id)
