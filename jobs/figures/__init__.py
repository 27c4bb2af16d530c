"""Selectors' results as Plotly figures: pure functions that return plain dicts, `{"data": [...], "layout": {...}}`.

The plotly package is not imported, so that the web process stays small; the tests hold every figure against it.
Figures carry no colours of text or ground: the page's script applies those of its theme. What a figure says in words
stands in its layout's `meta`.
"""

from jobs.figures.bars import bar_figure
from jobs.figures.comparison import compared_figures
from jobs.figures.curves import lost_points_in_words, overlay_figure
from jobs.figures.fleet import outcomes_figure, use_figure, waits_figure
from jobs.figures.over_time import over_time_figures
from jobs.figures.series import axis_title, is_lower_better, series_title
from jobs.figures.style import DASHES, PALETTE, Figure, colour_of, dash_of

__all__ = [
    "DASHES",
    "PALETTE",
    "Figure",
    "axis_title",
    "bar_figure",
    "colour_of",
    "compared_figures",
    "dash_of",
    "is_lower_better",
    "lost_points_in_words",
    "outcomes_figure",
    "over_time_figures",
    "overlay_figure",
    "series_title",
    "use_figure",
    "waits_figure",
]
