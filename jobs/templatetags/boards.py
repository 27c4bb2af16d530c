"""Cells of a board."""

import math
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from jobs.selectors.leaderboard import BoardMetric, Cell
from jobs.templatetags.pitwall import figure, memory, significant

register = template.Library()


@register.simple_tag
def board_cell(metric: BoardMetric, cell: Cell) -> SafeString | str:
    """Median, 95 % interval and n; of a target that most repeats never reached, that."""
    if cell.median is None:
        return figure(None)
    if not cell.is_reached:
        return format_html(
            '<span class="warn-text">{}</span><span class="spread">n={}</span>', gettext("not reached"), cell.n
        )
    interval = "" if cell.low is None or cell.high is None else f"{_bare(metric, cell.low)}–{_bare(metric, cell.high)} "
    missed = gettext("reached by %(k)s of %(n)s") % {"k": cell.n - cell.num_missed, "n": cell.n}
    count = missed if cell.num_missed else f"n={cell.n}"
    return format_html('{}<span class="spread">{}{}</span>', _shown(metric, cell.median), interval, count)


def _shown(metric: BoardMetric, value: float) -> Any:
    if metric.unit == "bytes":
        return memory(value)
    if metric.name == "mfu":
        return figure(value * 100, "%", 3)
    return figure(value, metric.unit, 4)


def _bare(metric: BoardMetric, value: float) -> str:
    """An interval's end in the unit of the median above it."""
    if metric.unit == "bytes":
        return significant(value / (2**30 if value >= 2**30 else 2**20), 3)
    return significant(value * 100 if metric.name == "mfu" else value, 3)


@register.filter
def slider_step(most: float) -> str:
    """A step that divides a slider's way into about a hundred."""
    return f"{10 ** math.floor(math.log10(most / 100)):g}" if most > 0 else "0.01"


@register.filter
def unlocalized(text: str) -> str:
    """A number for a style sheet, with a point whatever the language."""
    return str(text).replace(",", ".")
