"""Parallel coordinates: each run as a line over the options in which runs differ and the figures that they measured.

Drawn as plain lines on scales of 0 to 1, so that it can be downloaded as SVG like every other figure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext

from jobs.figures.style import Figure, colour_of, dash_of, drawable, in_lines, layout, on_screen, shortened, titled
from jobs.selectors.columns import Column
from jobs.selectors.comparison import Comparison
from jobs.selectors.values import in_words

_METRICS = ("steady_step_time_ms", "peak_allocated_bytes", "peak_rss_bytes", "energy_j", "final_eval_loss")
_MOST_OPTIONS = 7

# What an axis needs so that its title and marks can be read; on a phone the plot is wider than the screen.
_LEAST_PX = 104
_HEIGHT_PX = 350


@dataclass(frozen=True)
class Dimension:
    """One upright axis: where each job stands on it (0 to 1, None where it has no value), and its marks."""

    title: str
    heights: list[float | None]
    texts: list[str]  # of each job's value
    marks: dict[float, str]


def parallel_figure(comparison: Comparison, columns: Sequence[Column]) -> Figure | None:
    """A line for each job, coloured like its column; None where there are not two axes to draw between."""
    dimensions = _dimensions(comparison)
    if len(dimensions) < 2 or len(comparison.jobs) < 2:
        return None
    places = {pk: column.place for column in columns for pk in column.job_ids}
    shape = layout(
        x_title="",
        y_title="",
        caption=gettext(
            "A line for each run, over the options in which runs differ and what they measured, with units."
        ),
        alternative=gettext("Axes: %(names)s") % {"names": "; ".join(dimension.title for dimension in dimensions)},
        hovermode="closest",
        showlegend=False,
        shapes=[_upright(at) for at in range(len(dimensions))],
        annotations=[mark for at, dimension in enumerate(dimensions) for mark in _marks(at, dimension)],
    )
    shape["xaxis"] |= {
        "tickvals": list(range(len(dimensions))),
        "ticktext": [in_lines(dimension.title, 18) for dimension in dimensions],
        "range": [-0.2, len(dimensions) - 0.55],
        "showgrid": False,
        "side": "top",
        "tickangle": 0 if len(dimensions) <= 7 else -16,
    }
    shape["meta"]["least_width_px"] = _LEAST_PX * len(dimensions)
    shape["height"] = _HEIGHT_PX
    shape["yaxis"] |= {"range": [-0.06, 1.06], "showgrid": False, "showticklabels": False, "ticks": ""}
    return {
        "data": [_line(place, comparison, dimensions, places) for place in range(len(comparison.jobs))],
        "layout": shape,
    }


def _dimensions(comparison: Comparison) -> list[Dimension]:
    options = [_scaled(titled(row.label, row.unit), row.values) for row in comparison.diff if row.field != "seed"]
    measured = []
    for name in _METRICS:
        row = comparison.metric(name)
        if row is not None and any(isinstance(value, int | float) for value in row.values):
            values, unit = on_screen([drawable(value) for value in row.values], row.unit)
            measured.append(_scaled(titled(row.label, unit), values))
    return options[:_MOST_OPTIONS] + measured


def _scaled(title: str, values: Sequence[Any]) -> Dimension:
    """Numbers on their scale from lowest to highest; words evenly, in the order in which they come."""
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, int | float) and not isinstance(value, bool) for value in known):
        low, high = min(known), max(known)
        heights = [None if value is None else (value - low) / (high - low) if high > low else 0.5 for value in values]
        marks = {0.0: f"{low:.4g}", 1.0: f"{high:.4g}"} if high > low else {0.5: f"{low:.4g}"}
        return Dimension(title, heights, ["" if value is None else f"{value:.5g}" for value in values], marks)
    words = [in_words(value) for value in values]
    order = {word: place for place, word in enumerate(dict.fromkeys(words))}
    top = max(1, len(order) - 1)
    return Dimension(
        title, [order[word] / top for word in words], words, {at / top: word for word, at in order.items()}
    )


def _line(place: int, comparison: Comparison, dimensions: Sequence[Dimension], places: dict[int, int]) -> Figure:
    job = comparison.jobs[place]
    colour = places.get(job.pk, place)
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": f"#{job.pk} {job.title}",
        "x": list(range(len(dimensions))),
        "y": [dimension.heights[place] for dimension in dimensions],
        "text": [dimension.texts[place] for dimension in dimensions],
        "connectgaps": True,
        "opacity": 0.85 if len(comparison.jobs) <= 24 else 0.5,
        "line": {"color": colour_of(colour), "dash": dash_of(colour), "width": 1.6},
        "marker": {"color": colour_of(colour), "size": 5},
        "hovertemplate": "%{text}",
        "meta": {"place": colour, "part": "line", "jobs": [job.pk]},
    }


def _upright(at: int) -> Figure:
    return {
        "type": "line",
        "x0": at,
        "x1": at,
        "y0": 0,
        "y1": 1,
        "layer": "below",
        "line": {"width": 1, "color": "#8a94a6"},
    }


def _marks(at: int, dimension: Dimension) -> list[Figure]:
    return [
        {"x": at, "y": height, "text": shortened(text, 18), "showarrow": False, "xanchor": "left", "xshift": 6}
        for height, text in list(dimension.marks.items())[:12]
    ]
