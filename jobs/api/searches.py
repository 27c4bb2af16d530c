"""Searches for the fastest configuration that fits: begin one, see how far it is, stop it."""

from typing import Any

import ninja
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext
from ninja import Router, Schema, Status
from pydantic import ConfigDict, Field

from jobs.api.auth import asker
from jobs.api.choices import choose_queue, choose_team
from jobs.api.errors import ErrorsOut, refusal
from jobs.api.jobs import SubmitQuery
from jobs.contract.messages import gettext_noop as _
from jobs.contract.plan import MOST_REPEATS
from jobs.contract.spec import TrainSpec
from jobs.models import Search
from jobs.selectors.search_words import search_words
from jobs.selectors.searches import SearchView, may_change_search, view_search, visible_searches
from jobs.selectors.study_devices import type_named
from jobs.services.errors import NotAllowed
from jobs.services.searches import create_search, possible_axes, stop_search

router = Router(tags=["studies"])


class SearchIn(Schema):
    """The base, which axes may vary (all that the queue's workers take where none is named), and what to keep to."""

    model_config = ConfigDict(extra="forbid")

    base: TrainSpec
    axes: list[str] = Field([], max_length=20, description="precision, compile, optimizer, batch, loading, ...")
    num_repeats: int = Field(5, ge=2, le=MOST_REPEATS, description="Of the finalists and the base.")
    memory_budget_bytes: int | None = Field(None, ge=1)
    loss_margin: float | None = Field(None, gt=0, description="Left out, the margin that this work has.")
    device_name: str = Field("", max_length=200, description="The type of device; left out, its first run decides.")


class PointOut(Schema):
    """A configuration that was screened in short runs."""

    changes: dict[str, Any]
    jobs: list[int]
    step_time_ms: float | None
    num_repeats: int
    peak_bytes: float | None
    is_out: bool
    is_finalist: bool


class SearchOut(Schema):
    """A search: where it stands, what it took of the full grid's device time, and its answer with the finals' study."""

    id: int
    name: str
    stage: str
    words: str
    num_configurations: int
    used_s: float
    share_of_grid: float | None
    best: dict[str, Any] | None
    finals: int | None
    screened: list[PointOut]
    left_out: list[dict[str, Any]]

    @classmethod
    def of(cls, view: SearchView) -> "SearchOut":
        """The search as it stands now."""
        search = view.search
        return cls(
            id=search.pk,
            name=search.name,
            stage=search.stage,
            words=search_words(view),
            num_configurations=search.space.num_points,
            used_s=view.spent.used_s,
            share_of_grid=view.spent.share,
            best=view.best.changes if view.best else None,
            finals=search.finals_id,
            screened=[
                PointOut(**{name: getattr(one, name) for name in PointOut.model_fields if name != "jobs"},
                         jobs=[job.pk for job in one.jobs])
                for one in view.screened
            ],
            left_out=[
                {"changes": search.space.changes(tuple(one["point"])), "why": one["why"]} for one in search.left_out
            ],
        )  # fmt: skip


_REFUSED: dict[int, type[Schema]] = {401: ErrorsOut, 403: ErrorsOut, 404: ErrorsOut, 409: ErrorsOut, 422: ErrorsOut}


@router.post("/searches", response={201: SearchOut} | _REFUSED, summary="Search the fastest that fits")
def begin_search(request: HttpRequest, body: SearchIn, query: ninja.Query[SubmitQuery]) -> Status[SearchOut]:
    """Begin a search; 409 where a fifth of its grid's device time is too little to search it."""
    user = asker(request)
    queue, team = choose_queue(query.queue), choose_team(user, query.team)
    possible = possible_axes(body.base, queue)
    if unknown := next((name for name in body.axes if name not in possible), None):
        raise refusal("axes", "unknown_axis", _("There is nothing to vary in “%(name)s” here."), name=unknown)
    device_names = type_named(body.device_name, queue) if body.device_name else {}
    if body.device_name and not device_names:
        message = _("No worker of this queue has a device “%(name)s”.")
        raise refusal("device_name", "unknown_device", message, name=body.device_name)
    search = create_search(
        owner=user,
        team=team,
        queue=queue,
        spec=body.base,
        axes={name: values for name, values in possible.items() if not body.axes or name in body.axes},
        num_repeats=body.num_repeats,
        memory_budget_bytes=body.memory_budget_bytes,
        loss_margin=body.loss_margin,
        name=query.name,
        device_names=device_names,
    )
    return Status(201, SearchOut.of(view_search(search)))


@router.get("/searches/{int:search_id}", response={200: SearchOut} | _REFUSED, summary="Look at a search")
def get_search(request: HttpRequest, search_id: int) -> SearchOut:
    """How far it is, and what it found."""
    return SearchOut.of(view_search(_visible(request, search_id)))


@router.post("/searches/{int:search_id}/stop", response={200: SearchOut} | _REFUSED, summary="Stop a search")
def end_search(request: HttpRequest, search_id: int, reason: str = "") -> SearchOut:
    """Cancel what runs, and queue nothing more."""
    search = _visible(request, search_id)
    if not may_change_search(asker(request), search):
        raise NotAllowed(gettext("This search is not yours. Its owner or staff can do this."))
    stop_search(search, asker(request), reason)
    return SearchOut.of(view_search(_visible(request, search_id)))


def _visible(request: HttpRequest, search_id: int) -> Search:
    return get_object_or_404(visible_searches(asker(request)), pk=search_id)
