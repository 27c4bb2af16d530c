"""Selectors' results as Plotly figures: pure functions that return plain dicts, `{"data": [...], "layout": {...}}`.

The plotly package is not imported, so that the web process stays small; the tests hold every figure against it.
Figures carry no colours of text or ground: the page's script applies those of its theme.
"""

from jobs.figures.bars import bar_figure
from jobs.figures.comparison import comparison_figures
from jobs.figures.curves import NamedCurve, curve_figure, series_title
from jobs.figures.fleet import outcomes_figure, use_figure, waits_figure
from jobs.figures.style import DASHES, PALETTE, Figure, colour_of, dash_of

__all__ = [
    "DASHES",
    "PALETTE",
    "Figure",
    "NamedCurve",
    "bar_figure",
    "colour_of",
    "comparison_figures",
    "curve_figure",
    "dash_of",
    "outcomes_figure",
    "series_title",
    "use_figure",
    "waits_figure",
]
