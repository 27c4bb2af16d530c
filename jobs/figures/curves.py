"""Curves over steps, samples, tokens, time or another series."""

import math
from collections.abc import Sequence

from django.utils.translation import gettext, ngettext

from jobs.curve_blocks import RATIOS
from jobs.figures.series import axis_title, series_title
from jobs.figures.style import (
    Figure,
    colour_of,
    counted,
    dash_of,
    drawable,
    drawables,
    jobs_in_words,
    layout,
    pale,
    shortened,
)
from jobs.selectors.overlay import Axis, Line, Overlay, View
from jobs.smoothing import Smoothing
from jobs.statistics import Band

# Up to this many points each is marked, so that a curve of one point is seen at all.
_MARKED_POINTS = 40

# Up to this many lines are listed where the pointer is; more would cover the plot, and stand in its legend. More are
# hairlines, which a browser paints several times faster than any that are wider.
_MOST_IN_HOVER = 14
_MOST_IN_WORDS = 12


def overlay_figure(overlay: Overlay, *, x_log: bool = False, y_log: bool = False) -> Figure:
    """Lines with their bands or what was smoothed behind them; a line breaks where a value is not finite.

    Each trace's `meta` tells its `place` (colour and dash), its `part` (line, raw, low, high) and its jobs. Where
    there is nothing to draw, `meta` of the layout has the sentence that stands in the plot's place (`empty`). Its
    `remarks` are the caption's sentences about how the lines came about.
    """
    view, lines = overlay.view, overlay.lines
    shape = layout(
        x_title=axis_title(view.x),
        y_title=series_title(view.series),
        caption=_caption(overlay),
        alternative=_alternative(overlay),
        shapes=[_seam(line.column.place, x) for line in lines for x in line.seams],
        hovermode=("x unified" if 1 < len(lines) <= _MOST_IN_HOVER else "x"),
        hoverdistance=-1,
        showlegend=False,
    )
    shape["meta"] |= {"empty": nothing_drawn(overlay, x_log=x_log, y_log=y_log), "remarks": _remarks(overlay)}
    shape["xaxis"] |= {"type": "date" if view.x == Axis.CLOCK else "log" if x_log else "linear"}
    shape["yaxis"] |= {"type": "log" if y_log else "linear"}
    behind = [trace for line in lines for trace in (*_band(line), *_raw(line))]
    return {"data": [*behind, *(_line(line, len(lines)) for line in lines)], "layout": shape}


def _trace(line: Line, part: str, x: Sequence[float], y: Sequence[float]) -> Figure:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": line.column.label,
        "x": drawables(x),
        "y": drawables(y),
        "connectgaps": False,
        "meta": {"place": line.column.place, "part": part, "jobs": line.column.job_ids},
    }


def _line(line: Line, num_lines: int) -> Figure:
    place = line.column.place
    is_sparse = len(line.x) <= _MARKED_POINTS
    return _trace(line, "line", line.x, line.y) | {
        "mode": "lines+markers" if is_sparse else "lines",
        "line": {"color": colour_of(place), "dash": dash_of(place), "width": 2 if num_lines <= _MOST_IN_HOVER else 1},
        "marker": {"color": colour_of(place), "size": 5},
        **(_hover(line) if num_lines <= _MOST_IN_HOVER else {"hoverinfo": "none"}),
    }


def _hover(line: Line) -> Figure:
    """The value with a short name: long ones would cover the plot, and stand in its legend."""
    return {"hovertemplate": f"%{{y:.5g}}<extra>{shortened(line.column.label)}</extra>"}


def _raw(line: Line) -> list[Figure]:
    if not line.raw_x:
        return []
    quiet = {"showlegend": False, "hoverinfo": "skip", "opacity": 0.28}
    thin = {"line": {"color": colour_of(line.column.place), "width": 1}}
    return [_trace(line, "raw", line.raw_x, line.raw_y) | quiet | thin]


def _band(line: Line) -> list[Figure]:
    if not line.low:
        return []
    quiet = {"showlegend": False, "hoverinfo": "skip", "line": {"width": 0, "color": colour_of(line.column.place)}}
    fill = {"fill": "tonexty", "fillcolor": pale(line.column.place)}
    return [
        _trace(line, "low", line.x, line.low) | quiet,
        _trace(line, "high", line.x, line.high) | quiet | fill,
    ]


def _seam(place: int, x: float) -> Figure:
    """A dotted line where an attempt went on from the checkpoint of an earlier one."""
    ends = {"x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper"}
    return {"type": "line", **ends, "line": {"color": colour_of(place), "dash": "dot", "width": 1}}


def nothing_drawn(overlay: Overlay, *, x_log: bool = False, y_log: bool = False) -> str:
    """Why no line can be seen, in a sentence; empty where one can."""
    points = (point for line in overlay.lines for point in zip(line.x, line.y, strict=True))
    finite = [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]
    if any((x > 0 or not x_log) and (y > 0 or not y_log) for x, y in finite):
        return ""
    if finite:
        return gettext("No value is above 0, and a logarithmic axis shows only those. Take “Log” off to see them.")
    if any(line.x for line in overlay.lines):
        return gettext("Nothing but NaN and infinity was recorded, so there is no line to draw.")
    if overlay.view.is_cut:
        return gettext("No points lie in this range. “Whole range” shows all there are.")
    if not overlay.lines:
        return gettext("None of these jobs is there any more.")
    names = {"series": series_title(overlay.view.series), "x": axis_title(overlay.view.x)}
    if overlay.view.x == Axis.STEP:
        return gettext("There are no points of “%(series)s” to draw.") % names
    return gettext("There are no points of “%(series)s” to draw over “%(x)s”.") % names


def _caption(overlay: Overlay) -> str:
    names = {"series": series_title(overlay.view.series), "x": axis_title(overlay.view.x)}
    return " ".join([gettext("%(series)s over: %(x)s.") % names, *_remarks(overlay)])


def _remarks(overlay: Overlay) -> list[str]:
    """What the caption says of how the lines came about, in sentences."""
    view = overlay.view
    drawn = [line for line in overlay.lines if line.x]
    parts = []
    if view.group:
        parts.append(band_in_words(view.band))
    if view.smoothing is not Smoothing.NONE:
        parts.append(smoothing_in_words(view))
    shown = sum(len(line.x) for line in drawn)
    total = sum(line.num_points_total for line in drawn)
    thinned = [pk for line in drawn for pk in line.thinned_jobs]
    if not view.group and total > shown:
        count = {"shown": counted(shown), "total": counted(total)}
        words = gettext("%(shown)s of %(total)s points drawn, extremes among them; zooming in shows more.")
        if thinned:  # then there may be no more to show
            words = gettext("%(shown)s of %(total)s points drawn, extremes among them.")
        parts.append(words % count)
    if thinned:
        parts.append(lost_points_in_words(thinned))
    if thinned and view.smoothing is not Smoothing.NONE:
        parts.append(gettext("It is smoothed over those that are kept."))
    return parts


def lost_points_in_words(job_ids: Sequence[int]) -> str:
    """What is left of the curves of these old runs."""
    names = {"jobs": jobs_in_words(job_ids), "n": 2 * RATIOS["medium"]}
    return (
        ngettext(
            "Of the old run %(jobs)s only the lowest and the highest of every %(n)s points are kept.",
            "Of the old runs %(jobs)s only the lowest and the highest of every %(n)s points are kept.",
            len(job_ids),
        )
        % names
    )


def band_in_words(band: Band) -> str:
    """What a mean and its band are."""
    return {
        Band.STANDARD_DEVIATION: gettext("Mean of repeats; the band is one standard deviation either way."),
        Band.STANDARD_ERROR: gettext("Mean of repeats; the band is one standard error either way."),
        Band.INTERVAL: gettext("Mean of repeats; the band is the 95 % t-interval of the mean."),
        Band.RANGE: gettext("Mean of repeats; the band reaches from the lowest to the highest."),
    }[band]


def smoothing_in_words(view: View) -> str:
    """How the lines were smoothed."""
    amount = {"amount": f"{view.amount:g}"}
    return {
        Smoothing.EXPONENTIAL: gettext("Smoothed: exponential mean, debiased, weight of the past %(amount)s."),
        Smoothing.GAUSSIAN: gettext("Smoothed: Gaussian of %(amount)s points' standard deviation."),
        Smoothing.RUNNING_MEAN: gettext("Smoothed: mean of the last %(amount)s points."),
    }[view.smoothing] % amount


def _alternative(overlay: Overlay) -> str:
    """The plot in words: where each line ends."""
    drawn = [line for line in overlay.lines if any(drawable(value) is not None for value in line.y)]
    count = ngettext("%(n)s line", "%(n)s lines", len(drawn)) % {"n": len(drawn)}
    ends = [
        gettext("%(name)s ends at %(value)s") % {"name": line.column.label, "value": f"{_last(line):.4g}"}
        for line in drawn[:_MOST_IN_WORDS]
    ]
    return f"{series_title(overlay.view.series)}: {count}. " + "; ".join(ends)


def _last(line: Line) -> float:
    return next(value for value in reversed(line.y) if drawable(value) is not None)
