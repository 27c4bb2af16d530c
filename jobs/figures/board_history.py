"""A board's step times over time, each change of versions marked."""

from collections.abc import Sequence
from datetime import datetime

from django.utils.translation import gettext

from jobs.board_runs import MOST_RUNS
from jobs.figures.style import Figure, layout, titled
from jobs.selectors.board_history import BoardHistory, Change, Line, Moment

MOST_LINES = 6  # as many as have a colour of their own
_NEAR = 0.025  # marks closer than this part of the whole time share one: their words would cover each other


def history_figure(history: BoardHistory, labels: Sequence[str]) -> Figure:
    """A line for each of the fastest configurations, and the best of all as a dotted staircase."""
    lines = history.lines[:MOST_LINES]
    y_title = titled(gettext("Step time"), "ms")
    shape = layout(
        x_title="",
        y_title=y_title,
        caption=_caption(len(history.lines)),
        alternative="; ".join(
            f"{label}: {line.moments[-1].step_time_ms:.4g} ms" for label, line in zip(labels, lines, strict=False)
        ),
        hovermode="closest",
        showlegend=False,  # the page has a key with whole names
    )
    shape["xaxis"]["type"] = "date"
    shape["yaxis"]["rangemode"] = "tozero"
    marks = [(at.isoformat()[:19], words) for at, words in _marks(history)]
    shape["shapes"] = [_mark(moment) for moment, _told in marks]
    shape["annotations"] = [_words(moment, told) for moment, told in marks if told]
    traces = [_line(line, label, place) for place, (line, label) in enumerate(zip(lines, labels, strict=False))]
    return {"data": [_best(history.best), *traces], "layout": shape}


def _caption(num_lines: int) -> str:
    told = gettext(
        "Medians of each day, of %(n)s runs at most that each configuration has on each version; the dotted line is "
        "the best until then. Marks: where versions changed."
    ) % {"n": MOST_RUNS}
    if num_lines <= MOST_LINES:
        return told
    return told + " " + gettext("Drawn are the %(n)s that are the fastest now.") % {"n": MOST_LINES}


def _marks(history: BoardHistory) -> list[tuple[datetime, str]]:
    """When versions changed, and to what; changes that lie close together are one mark."""
    ends = [datetime.fromisoformat(one.at).timestamp() for line in history.lines for one in line.moments]
    ends += [change.at.timestamp() for change in history.changes]
    near_s = _NEAR * (max(ends) - min(ends)) if ends else 0.0
    groups: list[list[Change]] = []
    for change in history.changes:
        if groups and (change.at - groups[-1][0].at).total_seconds() < near_s:
            groups[-1].append(change)
        else:
            groups.append([change])
    return [(group[0].at, "; ".join(one.words for one in group if one.words)) for group in groups]


def _line(line: Line, label: str, place: int) -> Figure:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": label,
        "x": [one.at for one in line.moments],
        "y": [one.step_time_ms for one in line.moments],
        "text": [f"n={one.n}" for one in line.moments],
        "line": {"width": 1.5},
        "marker": {"size": 6},
        "hovertemplate": f"%{{x}}: %{{y:.5g}} ms, %{{text}}<br>{label}<extra></extra>",
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
    """Along the mark, from below: there lie no lines, for the axis begins at zero."""
    upright = {"textangle": -90, "xanchor": "right", "yanchor": "bottom", "align": "left", "showarrow": False}
    return {"x": moment, "y": 0.02, "yref": "paper", "text": words, **upright}
