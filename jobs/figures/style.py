"""How every figure looks: one palette, one layout."""

import math
from typing import Any

Figure = dict[str, Any]

# Okabe and Ito's colours, told apart with every common form of colour blindness (jfly.uni-koeln.de/color/), without
# black and without the yellow that is too pale on white.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9")
DASHES = ("solid", "dash", "dot", "dashdot")

_TRANSPARENT = "rgba(0,0,0,0)"


def colour_of(index: int) -> str:
    """The colour of the job at this place; the same in every figure of a page."""
    return PALETTE[index % len(PALETTE)]


def dash_of(index: int) -> str:
    """The line's dash: it changes where the colours begin anew, so that no two of 24 lines look alike."""
    return DASHES[index // len(PALETTE) % len(DASHES)]


def layout(*, x_title: str, y_title: str, **more: Any) -> Figure:
    """The layout that all figures share. `uirevision` is constant, so a live update keeps the reader's zoom."""
    return {
        "uirevision": "pitwall",
        "autosize": True,
        "paper_bgcolor": _TRANSPARENT,
        "plot_bgcolor": _TRANSPARENT,
        "colorway": list(PALETTE),
        "margin": {"l": 64, "r": 16, "t": 16, "b": 48},
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": -0.22, "yanchor": "top"},
        "xaxis": {"title": {"text": x_title}, "automargin": True, "zeroline": False},
        "yaxis": {"title": {"text": y_title}, "automargin": True, "zeroline": False},
        **more,
    }


def drawable(value: float | None) -> float | None:
    """A number that JSON and Plotly can take: NaN and infinity become None, which breaks the line."""
    return value if value is not None and math.isfinite(value) else None
