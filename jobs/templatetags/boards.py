"""Cells of a board."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext

from jobs.selectors.interval_words import more_repeats
from jobs.selectors.leaderboard import BoardMetric, Cell
from jobs.statistics import Verdict, is_told
from jobs.templatetags.pitwall import figure, memory, option_value, significant
from jobs.views.rows import Chip

if TYPE_CHECKING:
    from jobs.views.leaderboard import ShownCell, ShownRow

register = template.Library()


@register.simple_tag
def board_cells(shown: "ShownRow") -> SafeString:
    """The cells of a row's figures; a page has hundreds, so they are made here rather than by a template each."""
    return mark_safe("".join(_figure_cell(shown, item) for item in shown.cells))  # noqa: S308 each cell is escaped


def _figure_cell(shown: "ShownRow", item: "ShownCell") -> SafeString:
    return format_html(
        '<td class="num{}" data-label="{}">{}{}</td>',
        "" if item.cell.n else " empty-cell",
        item.metric.label,
        board_cell(item.metric, item.cell),
        _beside_the_baseline(shown) if item.is_ranking and item.cell.n else "",
    )


def _beside_the_baseline(shown: "ShownRow") -> SafeString:
    """The ranking figure as a bar, and as a ratio to the baseline's."""
    row = shown.row
    bar = format_html('<span class="bar-cell__track"><i style="width: {}%"></i></span>', f"{shown.share:.1f}")
    if row.ratio is None:
        return bar
    words = {Verdict.TIE: gettext("tie"), Verdict.TOO_NOISY: gettext("no difference shown")}.get(row.verdict, "")
    manner = row.verdict.value if row.verdict in (Verdict.BETTER, Verdict.WORSE) else "even"
    ratio = significant(row.ratio.ratio, 3)
    return format_html(
        '{}<span class="against against--{}" title="{}">{}× {}</span>', bar, manner, shown.ratio_words, ratio, words
    )


@register.simple_tag
def option_chips(chips: Sequence[Chip]) -> SafeString:
    """Options that stand out, each with its label; a word where there are none."""
    if not chips:
        return format_html('<span class="muted">{}</span>', gettext("defaults"))
    each = ((chip.label, option_value(chip.value)) for chip in chips)
    return format_html(
        '<div class="chips">{}</div>', format_html_join("", '<span class="chip"><b>{}</b>{}</span>', each)
    )


def board_cell(metric: BoardMetric, cell: Cell) -> SafeString | str:
    """Median, 95 % interval and n; of a target that most repeats never reached, that."""
    if cell.median is None:
        return figure(None)
    if not cell.is_reached:
        return format_html(
            '<span class="warn-text">{}</span><span class="spread">n={}</span>', gettext("not reached"), cell.n
        )
    missed = gettext("reached by %(k)s of %(n)s") % {"k": cell.n - cell.num_missed, "n": cell.n}
    count = missed if cell.num_missed else f"n={cell.n}"
    interval = _interval(metric, cell)
    return format_html('{}<span class="spread">{}{}</span>', _shown(metric, cell.median), interval, count)


def _interval(metric: BoardMetric, cell: Cell) -> str:
    if cell.low is None or cell.high is None:
        return ""
    ends = f"{_bare(metric, cell.low)}–{_bare(metric, cell.high)}"
    return f"{ends if is_told(cell.low, cell.high) else more_repeats()} "


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
