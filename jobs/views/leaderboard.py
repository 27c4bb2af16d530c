"""Which configuration does the same work fastest on the same ground."""

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext
from django.views.decorators.http import require_GET

from jobs.contract.spec import TrainSpec
from jobs.selectors.leaderboard import Board, boards
from jobs.views.access import person
from jobs.views.rows import Chip, chips

_MOST_BOARDS = 20


@dataclass(frozen=True)
class ShownBoard:
    """A board with its work in chips and the run times' scale."""

    board: Board
    work: list[Chip]
    slowest_ms: float
    all_ids: str
    configurations: list[list[Chip]]  # for each row, its options that are not at their default


@require_GET
def leaderboard(request: HttpRequest) -> HttpResponse:
    """All boards of the reader's teams, the last used one first."""
    found = boards(person(request))
    shown = [_shown(board) for board in found[:_MOST_BOARDS]]
    return render(request, "jobs/leaderboard.html", {"boards": shown, "num_left_out": len(found) - len(shown)})


def _shown(board: Board) -> ShownBoard:
    return ShownBoard(
        board=board,
        work=_work(board),
        slowest_ms=max(row.steady_step_time_ms for row in board.rows),
        configurations=[chips(row.configuration) for row in board.rows],
        all_ids=",".join(str(row.job_ids[0]) for row in board.rows[:12]),
    )


def _work(board: Board) -> list[Chip]:
    """What the runs of a board share, in the labels of the spec."""
    labels = {name: gettext(field.title or name) for name, field in TrainSpec.model_fields.items()}
    labels |= {"global_batch_size": gettext("Global batch"), "dataset_revision": gettext("Data revision")}
    hidden = {"task"} | {name for name in board.workload if name not in labels}
    return [Chip(name, labels[name], value) for name, value in board.workload.items() if name not in hidden]
