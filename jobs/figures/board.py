"""A board as a chart: step time against peak memory, with the front that nothing beats in both."""

from collections.abc import Mapping, Sequence

from django.utils.translation import gettext

from jobs.contract.metrics import Better
from jobs.figures.scatter import Point, front_line, pareto_front
from jobs.figures.style import Figure, layout, on_screen, titled
from jobs.selectors.columns import Column
from jobs.selectors.leaderboard import BoardRow

_RANKED, _UNRANKED, _BASELINE = 0, 3, 2  # places of the palette


def pareto_figure(rows: Sequence[BoardRow], labels: Mapping[int, str], budget_bytes: float | None = None) -> Figure:
    """A point for each configuration that measured both; the front is made of those that may rank."""
    measured = [row for row in rows if row.cells["steady_step_time_ms"].n and row.cells["peak_bytes"].n]
    times = [row.cells["steady_step_time_ms"].median or 0.0 for row in measured]
    sizes, unit = on_screen([row.cells["peak_bytes"].median for row in measured], "bytes")
    points = [
        Point(Column(labels[row.entry.pk], [], place), x, y or 0.0)
        for place, (row, x, y) in enumerate(zip(measured, times, sizes, strict=True))
    ]
    may_rank = [point for point, row in zip(points, measured, strict=True) if row.standing.may_rank]
    front = pareto_front(may_rank, Better.LOWER, Better.LOWER)
    x_title, y_title = titled(gettext("Step time"), "ms"), titled(gettext("Peak memory"), unit)
    shape = layout(
        x_title=x_title,
        y_title=y_title,
        caption=gettext("Left and low is better. On the dotted front: what nothing of equal loss beats in both."),
        alternative=gettext("On the front: %(names)s") % {"names": "; ".join(point.column.label for point in front)},
        hovermode="closest",
        showlegend=False,
    )
    if budget_bytes is not None:
        shape["shapes"] = [_budget_line(budget_bytes / (2**30 if unit == "GiB" else 2**20))]
    markers = [_marker(point, row) for point, row in zip(points, measured, strict=True)]
    return {"data": [*front_line(front, Better.LOWER), *markers], "layout": shape}


def _marker(point: Point, row: BoardRow) -> Figure:
    place = _BASELINE if row.is_baseline else _RANKED if row.standing.may_rank else _UNRANKED
    symbol = "diamond" if row.is_baseline else "circle" if row.standing.may_rank else "circle-open"
    return {
        "type": "scatter",
        "mode": "markers",
        "name": point.column.label,
        "x": [point.x],
        "y": [point.y],
        "marker": {"size": 11, "symbol": symbol},
        "hovertemplate": "%{x:.5g} ms, %{y:.5g}",
        "meta": {"place": place, "part": "point"},
    }


def _budget_line(height: float) -> Figure:
    line = {"color": "#8a5200", "width": 1, "dash": "dash"}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": height, "y1": height, "line": line}
