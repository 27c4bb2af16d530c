"""How every figure looks: one palette, one layout, and what it says in words."""

import math
import textwrap
from collections.abc import Sequence
from typing import Any

from django.utils.formats import number_format
from django.utils.translation import gettext

Figure = dict[str, Any]

# Okabe and Ito's colours, told apart with every common form of colour blindness (jfly.uni-koeln.de/color/), without
# black and without the yellow that is too pale on white.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")

_TRANSPARENT = "rgba(0,0,0,0)"
_MOST_NAMED = 6
_MIB, _GIB = 2**20, 2**30

# What the narrower of a page's plots has room for from left to right, and into how many labels it is cut at most.
_CHARACTERS_ACROSS, _MOST_IN_LINES = 84, 8
LEAST_WIDTH_PX = 600
_MOST_MARKS_NAMED = 30


def colour_of(index: int) -> str:
    """The colour of the job at this place; the same in every figure of a page."""
    return PALETTE[index % len(PALETTE)]


def dash_of(index: int) -> str:
    """The line's dash: it changes where the colours begin anew, so that no two of 36 lines look alike."""
    return DASHES[index // len(PALETTE) % len(DASHES)]


def pale(index: int, alpha: float = 0.16) -> str:
    """The colour of a place, thin enough for a band."""
    red, green, blue = (int(colour_of(index)[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"


def layout(*, x_title: str, y_title: str, caption: str = "", alternative: str = "", **more: Any) -> Figure:
    """The layout that all figures share. `uirevision` is constant, so a live update keeps the reader's zoom.

    `caption` stands under the figure, `alternative` is read out in its place.
    """
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
        **({"meta": {"caption": caption, "alternative": alternative}} if caption else {}),
        **more,
    }


def drawable(value: float | None) -> float | None:
    """A number that JSON and Plotly can take: NaN and infinity become None, which breaks the line."""
    return value if value is not None and math.isfinite(value) else None


def drawables(values: Sequence[float]) -> list[float | None]:
    """The same for a whole line."""
    return [value if math.isfinite(value) else None for value in values]


def on_screen(values: Sequence[float | None], unit: str) -> tuple[list[float | None], str]:
    """Values and unit as they are drawn: `bytes` become MiB, or GiB where one of them reaches a GiB."""
    if unit != "bytes":
        return list(values), unit
    largest = max((value for value in values if value is not None), default=0)
    size, name = (_GIB, "GiB") if largest >= _GIB else (_MIB, "MiB")
    return [None if value is None else value / size for value in values], name


def titled(title: str, unit: str) -> str:
    """A title with its unit."""
    return f"{title} ({unit})" if unit else title


def counted(count: float) -> str:
    """A whole number, grouped by thousands."""
    return str(number_format(round(count), use_l10n=True, force_grouping=True))


def in_lines(label: str, width: int = 28, most: int = 3) -> str:
    """A label that fits beside a row: broken into lines, as Plotly breaks them, and cut only behind the last one."""
    return "<br>".join(textwrap.wrap(label, width, max_lines=most, placeholder=" …", break_on_hyphens=False))


def name_marks(shape: Figure, labels: Sequence[str]) -> None:
    """Labels under the marks at 0, 1, 2 and so on; where they have several lines, the plot scrolls on a phone.

    Of very many marks only some are named, evenly: each says its name where the pointer is, and in the table.
    """
    places = range(0, len(labels), math.ceil(len(labels) / _MOST_MARKS_NAMED) or 1)
    ticks = _beneath([labels[place] for place in places])
    shape["xaxis"] |= {"tickvals": list(places), "ticktext": ticks}
    if any("<br>" in tick for tick in ticks):
        shape["meta"]["least_width_px"] = LEAST_WIDTH_PX


def _beneath(labels: Sequence[str]) -> list[str]:
    """A few labels are broken into lines, many are cut."""
    if len(labels) > _MOST_IN_LINES:
        return [shortened(label, 20) for label in labels]
    return [in_lines(label, max(12, _CHARACTERS_ACROSS // max(1, len(labels))), most=5) for label in labels]


def jobs_in_words(job_ids: Sequence[int]) -> str:
    """The first jobs by their numbers, and how many more there are."""
    names = ", ".join(f"#{pk}" for pk in job_ids[:_MOST_NAMED])
    num_more = len(job_ids) - _MOST_NAMED
    return names + gettext(" and %(n)s more") % {"n": num_more} if num_more > 0 else names


def shortened(label: str, most: int = 28) -> str:
    """A label that fits a tick."""
    return label if len(label) <= most else label[: most - 1] + "…"
