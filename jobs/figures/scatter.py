"""Any two figures against each other, with the front of those that nothing beats in both."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext, ngettext

from jobs.contract.metrics import Better
from jobs.figures.style import Figure, colour_of, drawable, layout, on_screen, titled
from jobs.selectors.baseline import CellRow
from jobs.selectors.columns import Column

# Shapes tell apart what has the same colour.
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x")


@dataclass(frozen=True)
class Point:
    """A column that measured both figures, as drawn."""

    column: Column
    x: float
    y: float


def scatter_figure(columns: Sequence[Column], across: CellRow, up: CellRow) -> Figure:
    """A point for each column; where both figures have a better direction, the Pareto front as a staircase."""
    points, x_unit, y_unit = _points(columns, across, up)
    front = pareto_front(points, across.metric.better, up.metric.better)
    x_title, y_title = titled(across.metric.label, x_unit), titled(up.metric.label, y_unit)
    shape = layout(
        x_title=x_title,
        y_title=y_title,
        caption=_caption(x_title, y_title, front, has_front=_have_directions(across, up)),
        alternative=gettext("On the front: %(names)s") % {"names": "; ".join(point.column.label for point in front)}
        if front
        else "; ".join(f"{point.column.label}: {point.x:.4g}, {point.y:.4g}" for point in points[:24]),
        hovermode="closest",
        showlegend=False,
    )
    return {"data": [*front_line(front, across.metric.better), *(_marker(point) for point in points)], "layout": shape}


def pareto_front(points: Sequence[Point], x_better: Better, y_better: Better) -> list[Point]:
    """Those that no other point beats in one figure without losing in the other, from left to right."""
    if Better.NEITHER in (x_better, y_better):
        return []
    x_sign, y_sign = (1 if better is Better.LOWER else -1 for better in (x_better, y_better))
    front: list[Point] = []
    for point in sorted(points, key=lambda p: (x_sign * p.x, y_sign * p.y)):
        if not front or y_sign * point.y < y_sign * front[-1].y:
            front.append(point)
    return sorted(front, key=lambda point: point.x)


def _have_directions(across: CellRow, up: CellRow) -> bool:
    return Better.NEITHER not in (across.metric.better, up.metric.better)


def _points(columns: Sequence[Column], across: CellRow, up: CellRow) -> tuple[list[Point], str, str]:
    xs, x_unit = on_screen([drawable(cell.value) for cell in across.cells], across.metric.unit)
    ys, y_unit = on_screen([drawable(cell.value) for cell in up.cells], up.metric.unit)
    found = [
        Point(column, x, y) for column, x, y in zip(columns, xs, ys, strict=True) if x is not None and y is not None
    ]
    return found, x_unit, y_unit


def _marker(point: Point) -> Figure:
    place = point.column.place
    return {
        "type": "scatter",
        "mode": "markers",
        "name": point.column.label,
        "x": [point.x],
        "y": [point.y],
        "marker": {"color": colour_of(place), "size": 10, "symbol": _SYMBOLS[place // 6 % len(_SYMBOLS)]},
        "hovertemplate": "%{x:.5g}, %{y:.5g}",
        "meta": {"place": place, "part": "point", "jobs": point.column.job_ids},
    }


def front_line(front: Sequence[Point], x_better: Better) -> list[Figure]:
    """A staircase through the front: between two of its points, the better one in x holds until the other begins."""
    if len(front) < 2:
        return []
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": gettext("Pareto front"),
            "x": [point.x for point in front],
            "y": [point.y for point in front],
            "line": {"shape": "hv" if x_better is Better.LOWER else "vh", "width": 1.5, "dash": "dot"},
            "hoverinfo": "skip",
            "meta": {"part": "front"},
        }
    ]


def _caption(x_title: str, y_title: str, front: Sequence[Point], *, has_front: bool) -> str:
    words = gettext("%(y)s against %(x)s; of repeats their means.") % {"x": x_title, "y": y_title}
    if not has_front:
        return words + " " + gettext("No front is drawn: one of the two has no better direction.")
    count = ngettext("%(n)s run or group is beaten by none in both", "%(n)s are beaten by none in both", len(front))
    return words + " " + gettext("The dotted front: ") + count % {"n": len(front)} + "."
