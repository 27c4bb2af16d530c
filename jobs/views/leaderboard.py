"""The leaderboard: a board at a time, and the list of all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET

from jobs.contract.spec import TrainSpec
from jobs.figures.board import pareto_figure
from jobs.figures.board_history import MOST_LINES, history_figure
from jobs.forms.board_address import GIB, BoardAddress
from jobs.live import list_version, read_open_jobs
from jobs.models import Board
from jobs.selectors.asked_work import open_runs
from jobs.selectors.board_history import Regression, history_of
from jobs.selectors.board_words import badge, headline, loss_words, ratio_words
from jobs.selectors.leaderboard import (
    LOSS_METRIC,
    METRICS,
    BoardMetric,
    BoardRow,
    BoardView,
    Cell,
    view_board,
    visible_boards,
    with_counts,
)
from jobs.selectors.reproductions import ReproductionView, newest_reproductions
from jobs.selectors.values import in_words
from jobs.views.access import person
from jobs.views.live import team_ids
from jobs.views.rows import Chip, chips

_MOST_BOARDS = 30
_MOST_ROWS = 25
_BUDGETS_GIB = (8, 16, 24)


@dataclass(frozen=True)
class ShownCell:
    """A figure of a row under its metric."""

    metric: BoardMetric
    cell: Cell
    is_ranking: bool


@dataclass(frozen=True)
class ShownRow:
    """One configuration: the options by which it stands out, its figures, and how it stands in words."""

    row: BoardRow
    chips: list[Chip]
    cells: list[ShownCell]
    badge_kind: str
    badge: str
    why: str
    ratio_words: str
    share: float  # of the ranking figure's largest, for its bar
    runs_query: str
    baseline_link: str
    reproductions: list[ReproductionView]


@require_GET
def leaderboard(request: HttpRequest) -> HttpResponse:
    """The board that was used last; the one that the page's menu names where it names one."""
    boards = visible_boards(person(request))
    if request.GET.get("board", "").isdecimal():
        return redirect("board", int(request.GET["board"][:18]))
    newest = boards.first()
    if newest is None:
        return render(request, "boards/empty.html")
    return _page(request, newest)


@require_GET
def board(request: HttpRequest, pk: int) -> HttpResponse:
    """One board."""
    return _page(request, get_object_or_404(visible_boards(person(request)), pk=pk))


@require_GET
def board_history(request: HttpRequest, pk: int) -> HttpResponse:
    """The part of a board's page that looks at other versions: fetched on its own, so that nobody waits for it."""
    history = history_of(get_object_or_404(visible_boards(person(request)), pk=pk))
    labels = [_words_of(line.configuration) for line in history.lines]
    context = {
        "has_history": bool(history.changes) or any(len(line.moments) > 1 for line in history.lines),
        "figure": history_figure(history, labels),
        "key": [(label, line.moments[-1]) for label, line in zip(labels[:MOST_LINES], history.lines, strict=False)],
        "regressions": _by_change(history.regressions),
    }
    return render(request, "boards/_history.html", context)


def _by_change(regressions: Sequence[Regression]) -> list[tuple[str, list[tuple[Regression, str]]]]:
    """Those that got slower, told once for each change of versions, the worst first."""
    changes = dict.fromkeys(one.words for one in regressions)
    return [
        (change, [(one, _words_of(one.configuration)) for one in regressions if one.words == change])
        for change in changes
    ]


def _page(request: HttpRequest, found: Board) -> HttpResponse:
    user, address = person(request), BoardAddress.from_query(request.GET)
    version = list_version(read_open_jobs(), team_ids(user))  # before the rows, see the list of jobs
    asked = address.asked(user)
    view = view_board(found, asked)
    rows = view.rows if address.shows_all else view.rows[:_MOST_ROWS]
    reproductions = newest_reproductions([row.entry.pk for row in rows])
    labels = {row.entry.pk: label_of(row, view) for row in view.all_rows}
    context = {
        "view": view,
        "board": found,
        "address": address,
        "problems": asked.only.problems if asked.only else (),
        "headline": headline(view),
        "work": _work(found),
        "common": _common(view),
        "metrics": _metrics(view),
        "rows": [_shown(row, view, address, reproductions) for row in rows],
        "num_cut": len(view.rows) - len(rows),
        "all_rows_link": address.link(rows="all"),
        "choices": list(METRICS.values()),
        "budgets": _BUDGETS_GIB,
        "most_gib": _most_gib(view),
        "figure": pareto_figure(view.all_rows, labels, view.budget_bytes),
        "boards": list(with_counts(visible_boards(user))[:_MOST_BOARDS]),
        "open_runs": open_runs(found),
        "compare_ids": ",".join(str(row.job_ids[0]) for row in view.rows[:12] if row.job_ids),
        "own_link": reverse("board", args=[found.pk]) + address.link(),
        "version": version,
    }
    return render(request, "boards/board.html", context)


def _shown(
    row: BoardRow, view: BoardView, address: BoardAddress, reproductions: Mapping[int, list[ReproductionView]]
) -> ShownRow:
    kind, words = badge(row)
    return ShownRow(
        row=row,
        chips=_own_chips(row, view),
        cells=[ShownCell(metric, row.cells[metric.name], metric.name == view.metric.name) for metric in _metrics(view)],
        badge_kind=kind,
        badge=words,
        why=loss_words(row),
        ratio_words=ratio_words(row),
        share=_share(row, view),
        runs_query=f"id:{','.join(map(str, row.job_ids))}" if row.job_ids else "",
        baseline_link=address.link(baseline=row.entry.pk),
        reproductions=reproductions.get(row.entry.pk, []),
    )


def _metrics(view: BoardView) -> list[BoardMetric]:
    """The ranking figure first, then those that anything was measured of."""
    others = [metric for metric in (*METRICS.values(), LOSS_METRIC) if metric.name != view.metric.name]
    return [view.metric, *(metric for metric in others if any(row.cells[metric.name].n for row in view.all_rows))]


def _own_chips(row: BoardRow, view: BoardView) -> list[Chip]:
    differing = {column.name for column in view.columns}
    return [chip for chip in chips(row.configuration) if chip.name in differing]


def label_of(row: BoardRow, view: BoardView) -> str:
    """A row's options in a line of text."""
    own = [f"{chip.label} {in_words(chip.value)}" for chip in _own_chips(row, view)]
    return ", ".join(own) or gettext("defaults")


def _words_of(configuration: Mapping[str, Any]) -> str:
    """A configuration's options that are not at their default, in a line of text."""
    own = [f"{chip.label} {in_words(chip.value)}" for chip in chips(dict(configuration)) if chip.name != "device"]
    return ", ".join(own) or gettext("defaults")


def _share(row: BoardRow, view: BoardView) -> float:
    known = [one.cells[view.metric.name].median for one in view.rows]
    largest = max((value for value in known if value is not None and value != float("inf")), default=0.0)
    value = row.cells[view.metric.name].median
    return 0.0 if not largest or value is None else min(100.0, 100 * value / largest)


def _common(view: BoardView) -> list[Chip]:
    """What all rows share beside the defaults."""
    if not view.all_rows:
        return []
    differing = {column.name for column in view.columns}
    return [chip for chip in chips(view.all_rows[0].configuration) if chip.name not in differing]


def _most_gib(view: BoardView) -> float:
    """The slider's end: a little above the largest peak."""
    known = [row.cells["peak_bytes"].median or 0.0 for row in view.all_rows]
    return float(f"{max([*known, (view.budget_bytes or 0.0)], default=0.0) / GIB * 1.1 or 1:.2g}")


def _work(found: Board) -> list[Chip]:
    """What the runs of a board share, in the labels of the spec."""
    labels: dict[str, Any] = {name: gettext(field.title or name) for name, field in TrainSpec.model_fields.items()}
    labels |= {"global_batch_size": gettext("Global batch"), "dataset_revision": gettext("Data revision")}
    hidden = {"task", "model", "dataset"} | {name for name in found.workload if name not in labels}
    return [
        Chip(name, labels[name], value)
        for name, value in found.workload.items()
        if name not in hidden and value is not None
    ]
