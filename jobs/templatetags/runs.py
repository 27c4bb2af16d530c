"""Cells of the runs list. A page has a thousand of them, so they are made here rather than by a template each."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext

from jobs.forms.run_list import CONFIG, JOB
from jobs.models.job import STATE_CHOICES
from jobs.selectors.run_fields import Kind, Part, run_fields
from jobs.templatetags.pitwall import ABSENT, ago, metric_value, num, option_value, percent_of, state_pill
from jobs.views.rows import JobRow

register = template.Library()

_STATE_WORDS = dict(STATE_CHOICES)


@register.simple_tag
def run_cells(row: JobRow, columns: Sequence[str]) -> SafeString:
    """The cells of one run, in the order of the columns."""
    return mark_safe("".join(_cell(row, name) for name in columns))  # noqa: S308 each cell is escaped


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


def _cell(row: JobRow, name: str) -> SafeString:
    if name in _SPECIAL:
        return format_html('<td class="wide col-{}">{}</td>', name, _SPECIAL[name](row))
    field = run_fields()[name]
    value = field.value(row.job)
    is_empty = value is None or value == "" or value == []
    kind = f"{'num' if is_number_column(name) else ''}{' empty-cell' if is_empty else ''}"
    text: Any = ABSENT if is_empty else _shown(name, field.part, field.kind, value)
    return format_html('<td class="{}" data-label="{}">{}</td>', kind, column_title(name), text)


def _shown(name: str, part: Part, kind: Kind, value: Any) -> Any:
    if part is Part.FIGURE:
        return metric_value(name, value)
    if kind is Kind.DATE:
        return ago(value) if isinstance(value, datetime) else value
    if kind is Kind.TAG:
        return _tags(value)
    if name == "outcome":
        return _STATE_WORDS[value]
    return option_value(value)


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


def _job(row: JobRow) -> SafeString:
    job = row.job
    return format_html(
        '<a class="job-name" id="job-link-{}" href="{}">{}</a><span class="job-sub">#{} · {} · {}</span>{}',
        job.pk,
        reverse("job-detail", args=[job.pk]),
        job.title,
        job.pk,
        job.spec["model"],
        job.spec["dataset"],
        _tags([tag.name for tag in job.tags.all()]),
    )


def _tags(names: Sequence[str]) -> SafeString:
    if not names:
        return mark_safe("")
    each = format_html_join("", '<span class="tag">{}</span>', ((name,) for name in names))
    return format_html('<span class="tags">{}</span>', each)


def _config(row: JobRow) -> SafeString:
    if not row.chips:
        return format_html('<span class="muted">{}</span>', gettext("defaults"))
    each = ((chip.label, option_value(chip.value)) for chip in row.chips)
    return format_html(
        '<div class="chips">{}</div>', format_html_join("", '<span class="chip"><b>{}</b>{}</span>', each)
    )


_SPECIAL: dict[str, Callable[[JobRow], SafeString]] = {"state": _state, JOB: _job, CONFIG: _config}
