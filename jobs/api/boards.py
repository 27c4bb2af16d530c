"""The leaderboard."""

import math
from datetime import datetime
from enum import StrEnum
from typing import Any

import ninja
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Router, Schema, Status
from pydantic import Field

from jobs.api.auth import asker
from jobs.api.errors import ErrorsOut, InvalidRequest
from jobs.api.queries import Query
from jobs.api.studies import LossOut, RatioOut
from jobs.contract.findings import Finding, Severity
from jobs.models import Board, BoardEntry, User
from jobs.selectors.board_filter import BoardFilter
from jobs.selectors.board_words import badge
from jobs.selectors.leaderboard import (
    FIRST_METRIC,
    LOSS,
    METRICS,
    Asked,
    BoardRow,
    BoardView,
    Cell,
    view_board,
    visible_boards,
    with_counts,
)
from jobs.services.reproductions import add_repeats, reproduce

router = Router(tags=["leaderboard"])

_CELLS = (*METRICS, LOSS)
BoardMetricName = StrEnum("BoardMetricName", {name.upper(): name for name in METRICS})  # type: ignore[misc]


class RowsQuery(Query):
    """What of a board is asked for."""

    metric: BoardMetricName = Field(BoardMetricName(FIRST_METRIC), description="What the rows are ranked by.")
    rank: str = Field("", pattern="^(all)?$", description="`all` ranks what is not shown to be of equal loss, too.")
    budget_gib: float | None = Field(None, gt=0, description="Only what fits into so much memory.")
    baseline: int | None = Field(None, ge=1, le=2**63 - 1, description="The entry that the others are held against.")
    target: float | None = Field(None, description="The training loss that runs are timed to.")
    q: str = Field("", max_length=2000, description="A text query, such as `precision:bf16-mixed owner:me`.")


class BoardsQuery(RowsQuery):
    """Which boards, too."""

    model: str = Field("", max_length=100, description="Only boards of this model.")
    dataset: str = Field("", max_length=100, description="Only boards of this data set.")
    device_name: str = Field("", max_length=200, description="Only boards of this device.")
    workload_key: str = Field("", max_length=16, description="Only boards of this work.")
    limit: int = Field(20, ge=1, le=100, description="Boards at most, the last used ones.")
    before: datetime | None = Field(None, description="Only boards that were last used before this time.")


class CellOut(Schema):
    """A figure over the repeats of one configuration: null where it was not measured.

    `interval` is of 95 %, null for fewer than two repeats. Of `n` repeats `num_missed` never reached the target; where
    these are most of them, `median` is "Infinity".
    """

    median: float | None
    interval: tuple[float, float] | None
    n: int
    num_missed: int

    @classmethod
    def of(cls, cell: Cell) -> "CellOut":
        """The cell as plain values."""
        interval = (cell.low, cell.high) if cell.low is not None and cell.high is not None else None
        return cls(median=cell.median, interval=interval, n=cell.n, num_missed=cell.num_missed)


class BoardRowOut(Schema):
    """One configuration. `rank` is null where it does not rank, `verdict` says why; `is_tie` tells a shared place.

    `ratio` is of the ranking figure to the baseline's, paired by seed. `jobs` are its newest runs of `num_runs`.
    """

    id: int
    rank: int | None
    is_tie: bool
    verdict: str
    badge: str
    configuration: dict[str, Any]
    n: int
    num_runs: int
    outcomes: dict[str, int]
    ratio: RatioOut
    loss: LossOut | None
    cells: dict[str, CellOut]
    jobs: list[int]
    owners: list[str]
    last_ended_at: datetime

    @classmethod
    def of(cls, row: BoardRow) -> "BoardRowOut":
        """The row with its figures as cells."""
        return cls(
            id=row.entry.pk,
            rank=row.rank,
            is_tie=row.is_tie,
            verdict=row.standing.value,
            badge=badge(row)[1],
            configuration=row.configuration,
            n=row.n,
            num_runs=row.num_runs,
            outcomes=row.outcomes,
            ratio=RatioOut.of(row.ratio, row.verdict),
            loss=LossOut.of(row.loss) if row.loss else None,
            cells={name: CellOut.of(row.cells[name]) for name in _CELLS},
            jobs=row.job_ids,
            owners=row.owners,
            last_ended_at=row.entry.last_ended_at,
        )


class BoardLine(Schema):
    """A board in a list."""

    id: int
    team: str
    workload_key: str
    environment_key: str
    workload: dict[str, Any]
    device_name: str
    versions: dict[str, str]
    num_configurations: int
    num_runs: int
    last_ended_at: datetime

    @classmethod
    def of(cls, board: Board) -> "BoardLine":
        """The board without its rows."""
        return cls(
            id=board.pk,
            team=board.team.name,
            workload_key=board.workload_key,
            environment_key=board.environment_key,
            workload=board.workload,
            device_name=board.device_name,
            versions=board.versions,
            num_configurations=board.num_entries,  # type: ignore[attr-defined]
            num_runs=board.num_runs,
            last_ended_at=board.last_ended_at,
        )


class BoardOut(Schema):
    """One work on one ground; `differing` names the configuration fields that tell its rows apart."""

    id: int
    team: str
    workload_key: str
    environment_key: str
    title: str
    workload: dict[str, Any]
    device_name: str
    versions: dict[str, str]
    metric: str
    baseline: int | None
    loss_margin: float | None
    target_loss: float | None
    differing: list[str]
    rows: list[BoardRowOut]

    @classmethod
    def of(cls, view: BoardView) -> "BoardOut":
        """The board with its rows."""
        board = view.board
        return cls(
            id=board.pk,
            team=board.team.name,
            workload_key=board.workload_key,
            environment_key=board.environment_key,
            title=view.title,
            workload=board.workload,
            device_name=board.device_name,
            versions=board.versions,
            metric=view.metric.name,
            baseline=view.baseline.entry.pk if view.baseline else None,
            loss_margin=view.margin,
            target_loss=view.target,
            differing=[column.name for column in view.columns],
            rows=[BoardRowOut.of(row) for row in view.rows],
        )


class BoardsOut(Schema):
    """Boards with their rows, the last used one first."""

    boards: list[BoardOut]


class BoardLines(Schema):
    """Boards without their rows, the last used one first."""

    boards: list[BoardLine]


_REFUSED: dict[int, type[Schema]] = {401: ErrorsOut, 422: ErrorsOut}


@router.get("/leaderboard", response={200: BoardsOut} | _REFUSED, summary="See who is fastest")
def leaderboard(request: HttpRequest, query: ninja.Query[BoardsQuery]) -> BoardsOut:
    """Configurations ranked within each work and environment of your teams: at equal loss, ties shared."""
    user = asker(request)
    asked = _asked(query, user)
    found = _boards(query, user)[: query.limit]
    return BoardsOut(boards=[BoardOut.of(view_board(board, asked)) for board in found])


@router.get("/boards", response={200: BoardLines} | _REFUSED, summary="List boards")
def list_boards(request: HttpRequest, query: ninja.Query[BoardsQuery]) -> BoardLines:
    """Which boards there are; their rows are at `/boards/{id}`."""
    found = with_counts(_boards(query, asker(request)))[: query.limit]
    return BoardLines(boards=[BoardLine.of(board) for board in found])


@router.get("/boards/{int:board_id}", response={200: BoardOut, 404: ErrorsOut} | _REFUSED, summary="Look at a board")
def get_board(request: HttpRequest, board_id: int, query: ninja.Query[RowsQuery]) -> BoardOut:
    """One board with its rows."""
    user = asker(request)
    board = get_object_or_404(visible_boards(user), pk=board_id)
    return BoardOut.of(view_board(board, _asked(query, user)))


def _boards(query: BoardsQuery, user: User) -> Any:
    names = ("model", "dataset", "device_name", "workload_key")
    wanted = {name: getattr(query, name) for name in names if getattr(query, name)}
    boards = visible_boards(user).filter(**wanted)
    return boards.filter(last_ended_at__lt=query.before) if query.before else boards


def _asked(query: RowsQuery, user: User) -> Asked:
    only = BoardFilter.of(query.q, user) if query.q else None
    if only and only.problems:
        finding = Finding(code="not_understood", field="q", severity=Severity.REFUSE, message=" ".join(only.problems))
        raise InvalidRequest([finding])
    return Asked(
        metric=query.metric.value,
        ranks_all=query.rank == "all",
        budget_bytes=None if query.budget_gib is None else query.budget_gib * 2**30,
        baseline=query.baseline,
        target=query.target if query.target is not None and math.isfinite(query.target) else None,
        only=only,
    )


class QueuedOut(Schema):
    """The jobs that were queued."""

    jobs: list[int]


_REFUSED_ACT: dict[int, type[Schema]] = {404: ErrorsOut, 409: ErrorsOut} | _REFUSED


@router.post(
    "/boards/entries/{int:entry_id}/reproduce", response={201: QueuedOut} | _REFUSED_ACT, summary="Measure it again"
)
def reproduce_entry(request: HttpRequest, entry_id: int) -> Status[QueuedOut]:
    """Queue a configuration's repeats once more; the board says whether they agree once all have ended."""
    jobs = reproduce(_entry(request, entry_id), asker(request)).jobs
    return Status(201, QueuedOut(jobs=list(jobs.order_by("pk").values_list("pk", flat=True))))


@router.post("/boards/entries/{int:entry_id}/repeat", response={201: QueuedOut} | _REFUSED_ACT, summary="Add repeats")
def repeat_entry(request: HttpRequest, entry_id: int) -> Status[QueuedOut]:
    """Queue the seeds that a configuration lacks for a verdict."""
    return Status(201, QueuedOut(jobs=[job.pk for job in add_repeats(_entry(request, entry_id), asker(request))]))


def _entry(request: HttpRequest, entry_id: int) -> BoardEntry:
    entries = BoardEntry.objects.select_related("board__baseline")
    return get_object_or_404(entries, pk=entry_id, board__in=visible_boards(asker(request)))
