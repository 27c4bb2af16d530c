"""Curves over steps or over wall time."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobs.figures.style import Figure, colour_of, dash_of, drawable, layout
from jobs.selectors.curves import CurveView

XAxis = Literal["step", "wall_s"]

_X_TITLES: dict[XAxis, Promise] = {"step": _("Optimizer step"), "wall_s": _("Wall time since the first step (s)")}
_SERIES_TITLES: dict[str, Promise] = {
    "train_loss": _("Training loss"),
    "eval_loss": _("Evaluation loss"),
    "eval_accuracy": _("Evaluation accuracy"),
    "step_time_ms": _("Step time (ms)"),
    "samples_per_s": _("Throughput (samples/s)"),
    "learning_rate": _("Learning rate"),
}

# Up to this many points each is marked, so that a curve of one point is seen at all.
_MARKED_POINTS = 40


@dataclass(frozen=True)
class NamedCurve:
    """A curve and the name that stands in the legend."""

    name: str
    curve: CurveView


def series_title(series: str) -> str:
    """A series in words with its unit; its own name where there are none."""
    return str(_SERIES_TITLES.get(series, series))


def curve_figure(curves: Sequence[NamedCurve], x: XAxis = "step", y_title: str = "") -> Figure:
    """Lines over optimizer steps or over seconds; a line breaks where a value is not finite."""
    lines = [_line(index, named, x) for index, named in enumerate(curves)]
    shape = layout(
        shapes=[seam for index, named in enumerate(curves) for seam in _seams(index, named.curve, x)],
        x_title=str(_X_TITLES[x]),
        y_title=y_title or (series_title(curves[0].curve.series) if curves else gettext("Value")),
        hovermode="x unified" if len(lines) > 1 else "x",
        showlegend=len(lines) > 1,
    )
    return {"data": lines, "layout": shape}


def _line(index: int, named: NamedCurve, x: XAxis) -> Figure:
    curve = named.curve
    return {
        "type": "scatter",
        "name": named.name,
        "mode": "lines+markers" if len(curve.x) <= _MARKED_POINTS else "lines",
        "x": list(curve.x) if x == "step" else [drawable(second) for second in curve.wall_s],
        "y": [drawable(value) for value in curve.y],
        "connectgaps": False,
        "line": {"color": colour_of(index), "dash": dash_of(index), "width": 2},
        "marker": {"color": colour_of(index), "size": 5},
        "hovertemplate": "%{y:.5g}",
    }


def _seams(index: int, curve: CurveView, x: XAxis) -> list[Figure]:
    """A dotted line where an attempt went on from the checkpoint of an earlier one."""
    places = [bisect_right(curve.x, step) for step in curve.seams]
    inside = [place for place in places if 0 < place < len(curve.x)]
    return [
        {
            "type": "line",
            "x0": curve.x[place - 1] if x == "step" else curve.wall_s[place - 1],
            "x1": curve.x[place - 1] if x == "step" else curve.wall_s[place - 1],
            "y0": 0,
            "y1": 1,
            "yref": "paper",
            "line": {"color": colour_of(index), "dash": "dot", "width": 1},
        }
        for place in inside
    ]
