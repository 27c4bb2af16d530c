"""The leaderboard."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema

from jobs.api.auth import asker
from jobs.api.errors import ErrorsOut
from jobs.selectors.leaderboard import Board, BoardRow, boards

router = Router(tags=["leaderboard"])

_CELLS = ("steady_step_time_ms", "samples_per_s", "peak_allocated_bytes", "peak_rss_bytes", "final_eval_loss")


class CellOut(Schema):
    """A figure over the runs of one configuration; null where it was not measured."""

    median: float | None
    n: int


class BoardRowOut(Schema):
    """One configuration; `ratio` is its step time relative to the fastest."""

    rank: int
    configuration: dict[str, Any]
    n: int
    ratio: float
    cells: dict[str, CellOut]
    jobs: list[int]
    owners: list[str]
    last_ended_at: datetime

    @classmethod
    def of(cls, row: BoardRow) -> "BoardRowOut":
        """The row with its figures as cells."""
        return cls(
            rank=row.rank,
            configuration=row.configuration,
            n=row.n,
            ratio=row.ratio,
            cells={name: CellOut(median=getattr(row, name), n=row.n) for name in _CELLS},
            jobs=row.job_ids,
            owners=row.owners,
            last_ended_at=row.last_ended_at,
        )


class BoardOut(Schema):
    """One workload in one environment; `differing` names the configuration fields that tell its rows apart."""

    workload_key: str
    environment_key: str
    title: str
    workload: dict[str, Any]
    device_name: str
    versions: dict[str, str]
    differing: list[str]
    rows: list[BoardRowOut]

    @classmethod
    def of(cls, board: Board) -> "BoardOut":
        """The board with all its rows."""
        return cls(
            workload_key=board.workload_key,
            environment_key=board.environment_key,
            title=board.title,
            workload=board.workload,
            device_name=board.device_name,
            versions=board.versions,
            differing=[column.name for column in board.columns],
            rows=[BoardRowOut.of(row) for row in board.rows],
        )


class BoardsOut(Schema):
    """All boards, the last used one first."""

    boards: list[BoardOut]


@router.get("/leaderboard", response={200: BoardsOut, 401: ErrorsOut}, summary="See who is fastest")
def leaderboard(request: HttpRequest) -> BoardsOut:
    """Configurations ranked by median step time, for each workload and environment of your teams' jobs."""
    return BoardsOut(boards=[BoardOut.of(board) for board in boards(asker(request))])
