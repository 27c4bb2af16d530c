"""Lines of the runs list. A page has a thousand cells, so they are written here rather than by a template each.

What writes a cell returns HTML: every text that a person or a worker gave goes through `escape`.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from html import escape
from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext

from jobs.forms.run_list import CONFIG, JOB
from jobs.models.job import STATE_CHOICES
from jobs.selectors.run_fields import Kind, Part, run_fields
from jobs.templatetags.pitwall import ABSENT, ago, metric_value, num, option_value, percent_of, state_pill
from jobs.views.rows import JobRow, chips

register = template.Library()

_STATE_WORDS = dict(STATE_CHOICES)

Cell = Callable[[JobRow], str]  # a run's cell of one column, as HTML


@register.simple_tag
def run_rows(rows: Iterable[JobRow], columns: Sequence[str]) -> SafeString:
    """A line of the table for each run, its cells in the order of the columns."""
    tick, cells = gettext("Tick job %(id)s"), [_cell_of(name) for name in columns]
    return mark_safe("\n".join(_line(row, tick, cells) for row in rows))  # noqa: S308 each cell is escaped


def _line(row: JobRow, tick: str, cells: Sequence[Cell]) -> str:
    number = row.job.pk
    return (
        f'<tr data-job="{number}"><td class="col-tick"><input class="check tick" type="checkbox" id="tick-{number}" '
        f'value="{number}" aria-label="{escape(tick % {"id": number})}"></td>'
        f"{''.join(cell(row) for cell in cells)}</tr>"
    )


@register.filter
def column_title(name: str) -> str:
    """What stands above a column."""
    if name in (JOB, CONFIG):
        return gettext("Job") if name == JOB else gettext("Configuration")
    label = run_fields()[name].label
    return gettext(label) if isinstance(label, str) else str(label)


@register.filter
def is_number_column(name: str) -> bool:
    """Whether a column's values are figures, which stand to the right."""
    field = run_fields().get(name)
    return field is not None and field.kind in (Kind.NUMBER, Kind.DATE)


def _cell_of(name: str) -> Cell:
    """What writes the cells of a column; all that is the same in each of them is made here, once."""
    if special := _SPECIAL.get(name):
        return lambda row: f'<td class="wide col-{name}">{special(row)}</td>'
    field, show = run_fields()[name], _shown_as(name)
    manner, title = "num" if is_number_column(name) else "", escape(column_title(name))
    empty = f'<td class="{manner} empty-cell" data-label="{title}">{ABSENT}</td>'

    def write(row: JobRow) -> str:
        value = field.value(row.job)
        if value is None or value == "" or value == []:
            return empty
        return f'<td class="{manner}" data-label="{title}">{conditional_escape(show(value))}</td>'

    return write


def _shown_as(name: str) -> Callable[[Any], Any]:
    """How a field's values look; a text that is not marked as safe is escaped by whom it is given to."""
    field = run_fields()[name]
    if field.part is Part.FIGURE:
        return lambda value: metric_value(name, value)
    if field.kind is Kind.DATE:
        return lambda value: ago(value) if isinstance(value, datetime) else value
    if field.kind is Kind.TAG:
        return lambda value: mark_safe(_tags(value))  # noqa: S308 each name is escaped
    if name == "outcome":
        return _STATE_WORDS.__getitem__
    return option_value


def _state(row: JobRow) -> SafeString:
    job, attempt = row.job, row.attempt
    if not job.is_live or attempt is None:
        return state_pill(job.state)
    return format_html(
        '{} <div class="progress-line"><div class="bar-meter">'
        '<i data-job-meter="{}" data-total="{}" style="width: {}%"></i></div>'
        '<span><span data-job-step="{}">{}</span>{}</span></div>',
        state_pill(job.state),
        job.pk,
        row.total_steps or "",
        percent_of(attempt.last_step, row.total_steps),
        job.pk,
        num(attempt.last_step, 6),
        f" / {num(row.total_steps, 6)}" if row.total_steps else "",
    )


def _job(row: JobRow) -> str:
    job, address = row.job, reverse("job-detail", args=[row.job.pk])
    return (
        f'<a class="job-name" id="job-link-{job.pk}" href="{address}">{escape(job.title)}</a>'
        f'<span class="job-sub">#{job.pk} · {escape(job.spec["model"])} · {escape(job.spec["dataset"])}</span>'
        f"{_tags(job.tag_names())}"
    )


def _tags(names: Sequence[str]) -> str:
    each = "".join(f'<span class="tag">{escape(name)}</span>' for name in names)
    return f'<span class="tags">{each}</span>' if names else ""


def _config(row: JobRow) -> str:
    chosen = chips(row.job.spec)
    if not chosen:
        return f'<span class="muted">{escape(gettext("defaults"))}</span>'
    each = (f'<span class="chip"><b>{escape(c.label)}</b>{escape(option_value(c.value))}</span>' for c in chosen)
    return f'<div class="chips">{"".join(each)}</div>'


_SPECIAL: dict[str, Cell] = {"state": _state, JOB: _job, CONFIG: _config}
