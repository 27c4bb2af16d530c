"""A board's step times over time, each change of versions marked."""

from collections.abc import Sequence

from django.utils.translation import gettext

from jobs.figures.style import Figure, layout, shortened, titled
from jobs.selectors.board_history import BoardHistory, Line, Moment

MOST_LINES = 6  # as many as have a colour of their own


def history_figure(history: BoardHistory, labels: Sequence[str]) -> Figure:
    """A line for each of the fastest configurations, and the best of all as a dotted staircase."""
    lines = history.lines[:MOST_LINES]
    y_title = titled(gettext("Step time"), "ms")
    shape = layout(
        x_title="",
        y_title=y_title,
        caption=gettext("Medians of each day; the dotted line is the best until then. Marks: where versions changed."),
        alternative="; ".join(
            f"{label}: {line.moments[-1].step_time_ms:.4g} ms" for label, line in zip(labels, lines, strict=False)
        ),
        hovermode="closest",
    )
    shape["xaxis"]["type"] = "date"
    shape["yaxis"]["rangemode"] = "tozero"
    moments = [change.at.isoformat()[:19] for change in history.changes]
    shape["shapes"] = [_mark(moment) for moment in moments]
    shape["annotations"] = [
        _words(moment, change.words) for moment, change in zip(moments, history.changes, strict=True) if change.words
    ]
    traces = [_line(line, label, place) for place, (line, label) in enumerate(zip(lines, labels, strict=False))]
    return {"data": [_best(history.best), *traces], "layout": shape}


def _line(line: Line, label: str, place: int) -> Figure:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": shortened(label, 40),
        "x": [one.at for one in line.moments],
        "y": [one.step_time_ms for one in line.moments],
        "text": [f"n={one.n}" for one in line.moments],
        "line": {"width": 1.5},
        "marker": {"size": 6},
        "hovertemplate": "%{x}: %{y:.5g} ms, %{text}",
        "meta": {"place": place},
    }


def _best(best: Sequence[Moment]) -> Figure:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": gettext("Best until then"),
        "x": [one.at for one in best],
        "y": [one.step_time_ms for one in best],
        "line": {"shape": "hv", "width": 1.5, "dash": "dot"},
        "hoverinfo": "skip",
        "meta": {"part": "front"},
    }


def _mark(moment: str) -> Figure:
    line = {"color": "#7b8698", "width": 1, "dash": "dash"}
    return {"type": "line", "yref": "paper", "x0": moment, "x1": moment, "y0": 0, "y1": 1, "line": line}


def _words(moment: str, words: str) -> Figure:
    return {"x": moment, "y": 1, "yref": "paper", "yanchor": "bottom", "text": words, "showarrow": False}
