"""A board as CSV: a line for each configuration, its options and its figures with interval and n."""

import csv
import io
import math
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_GET

from jobs.forms.board_address import BoardAddress
from jobs.selectors.leaderboard import LOSS, METRICS, BoardRow, BoardView, view_board, visible_boards
from jobs.views.access import person
from jobs.views.run_csv import csv_cell

_FIGURES = (*METRICS, LOSS)


@require_GET
def board_csv(request: HttpRequest, pk: int) -> HttpResponse:
    """All rows that the address shows, in its order."""
    user, address = person(request), BoardAddress.from_query(request.GET)
    asked = address.asked(user)
    if asked.only and asked.only.problems:
        return HttpResponse("\n".join(asked.only.problems), status=422, content_type="text/plain; charset=utf-8")
    view = view_board(get_object_or_404(visible_boards(user), pk=pk), asked)
    response = HttpResponse(_text(view), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="pitwall-board-{pk}.csv"'
    return response


def _text(view: BoardView) -> str:
    names = [column.name for column in view.columns]
    heads = [f"{figure}{end}" for figure in _FIGURES for end in ("", "_low", "_high", "_n")]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(["rank", "standing", *names, *heads, "ratio_to_baseline", "num_runs", "owners", "jobs"])
    writer.writerows(_line(row, names) for row in view.rows)
    return text.getvalue()


def _line(row: BoardRow, names: list[str]) -> list[Any]:
    figures: list[Any] = []
    for name in _FIGURES:
        cell = row.cells[name]
        figures += [_number(cell.median), _number(cell.low), _number(cell.high), cell.n]
    return [
        row.rank or "",
        row.standing.value,
        *(csv_cell(row.configuration[name]) for name in names),
        *figures,
        _number(row.ratio.ratio if row.ratio else None),
        row.num_runs,
        csv_cell(" ".join(row.owners)),
        " ".join(map(str, row.job_ids)),
    ]


def _number(value: float | None) -> float | str:
    """Infinity, which stands for a target that was never reached, is no number of a spreadsheet."""
    if value is None:
        return ""
    return value if math.isfinite(value) else "not reached"
