"""How values look on a page: states, figures with their units, times, icons."""

import json
import math
from datetime import datetime
from functools import cache, lru_cache
from typing import Any

from django import template
from django.contrib.messages.storage.base import Message
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobs.contract.findings import Finding
from jobs.contract.metrics import Summary
from jobs.contract.options import metadata
from jobs.contract.states import State
from jobs.figures.style import PALETTE, dash_of
from jobs.messages import translate
from jobs.models.job import STATE_LABELS
from jobs.selectors.baseline import Cell
from jobs.selectors.fleet import Rate
from jobs.selectors.interval_words import interval_words, more_repeats, ratio_interval_words
from jobs.selectors.waiting import about as roughly
from jobs.statistics import WIDEST_FACTOR, Band, RatioInterval, Verdict

register = template.Library()

ABSENT = "–"

# Outlines on a 16 x 16 grid. A state is told by its shape as well as by its colour.
_ICONS = {
    "queued": '<circle cx="8" cy="8" r="6"/><path d="M8 4.600V8l2.300 1.600"/>',
    "starting": '<path d="M8 2a6 6 0 1 1-6 6" /><path d="M2 8a6 6 0 0 1 6-6" stroke-dasharray="1.500 2.500"/>',
    "running": '<path d="M4 2.500v11l9.500-5.500z"/>',
    "succeeded": '<path d="M3 8.600l3.300 3.300L13 4.700"/>',
    "failed": '<path d="M4 4l8 8M12 4l-8 8"/>',
    "out_of_memory": '<path d="M4 4h8v8H4zM6.500 1.500V4m3-2.500V4m-3 8v2.500m3-2.500v2.500"/>',
    "diverged": '<path d="M2 11l3-3 2 3 3-6 1 2 3-6"/>',
    "timed_out": '<path d="M4 2h8M4 14h8M5 2c0 4 6 8 6 12M11 2c0 4-6 8-6 12"/>',
    "cancelled": '<circle cx="8" cy="8" r="6"/><path d="M4 12l8-8"/>',
    "lost": '<path d="M5.500 6a2.500 2.500 0 1 1 3.600 2.200c-.7.4-1.100.8-1.100 1.800M8 13v.1"/>',
    "online": '<path d="M3 8.600l3.300 3.300L13 4.700"/>',
    "offline": '<path d="M4 4l8 8M12 4l-8 8"/>',
    "draining": '<path d="M8 2v9M4.500 7.500L8 11l3.500-3.500M3 14h10"/>',
    "paused": '<path d="M5.500 3v10M10.500 3v10"/>',
    "plus": '<path d="M8 3v10M3 8h10"/>',
    "search": '<circle cx="7" cy="7" r="4.500"/><path d="M10.500 10.500L14 14"/>',
    "warning": '<path d="M8 2.500L14.500 13.500h-13zM8 6.500v3.500M8 12v.1"/>',
    "clock": '<circle cx="8" cy="8" r="6"/><path d="M8 4.600V8l2.300 1.600"/>',
    "copy": '<path d="M5.500 5.500h8v8h-8zM10.500 3v-.5h-8v8H3"/>',
    "compare": '<path d="M2 13c2.500 0 2.500-9 6-9s3 5 6 5M2 9c3 0 3.500 4 6 4s3-9 6-9"/>',
    "theme": '<circle cx="8" cy="8" r="6"/><path d="M8 2a6 6 0 0 1 0 12z" fill="currentColor"/>',
    "close": '<path d="M4 4l8 8M12 4l-8 8"/>',
    "info": '<circle cx="8" cy="8" r="6"/><path d="M8 7.500V11M8 5v.1"/>',
    "more": '<path d="M3.500 8v.01M8 8v.01M12.500 8v.01" stroke-width="2.400"/>',
    "up": '<path d="M8 13V4M4 7.500L8 3.500l4 4"/>',
    "down": '<path d="M8 3v9M4 8.500l4 4 4-4"/>',
    "first": '<path d="M3 2.500h10M8 14V6M4.500 9L8 5.500 11.500 9"/>',
    "last": '<path d="M3 13.500h10M8 2v8M4.500 7L8 10.500 11.500 7"/>',
    "again": '<path d="M13 8a5 5 0 1 1-1.500-3.500M13 2.500v3h-3"/>',
    "move": '<path d="M2.500 8h10M9 4.500L12.500 8 9 11.500"/>',
    "grip": '<path d="M6 4v.01M10 4v.01M6 8v.01M10 8v.01M6 12v.01M10 12v.01" stroke-width="2.200"/>',
    "chevron": '<path d="M4 6l4 4 4-4"/>',
    "columns": '<path d="M2.500 3h11v10h-11zM6.200 3v10M9.800 3v10"/>',
    "view": '<path d="M4 2.500h8v11l-4-3-4 3z"/>',
    "tag": '<path d="M2.500 2.500h5l6 6-5 5-6-6zM5.500 5.500v.01"/>',
    "download": '<path d="M8 2.500v7.500M4.500 7L8 10.500 11.500 7M3 13.500h10"/>',
    "pin": '<path d="M5 2.500h6l-1 5 2 2.500H4l2-2.500zM8 10v4"/>',
    "play": '<path d="M4.500 3v10l8-5z"/>',
}


@register.simple_tag
@cache
def icon(name: str) -> SafeString:
    """A drawing beside a word; it says nothing to a screen reader."""
    drawing = mark_safe(_ICONS[name])  # noqa: S308 our own constant
    return format_html('<svg class="icon" viewBox="0 0 16 16" aria-hidden="true">{}</svg>', drawing)


# The dashes of a figure's lines (`jobs.figures.style.DASHES`), as a legend draws them.
_DASH_ARRAYS = {"solid": "", "dash": "5 3", "dot": "1.5 2.5", "dashdot": "5 2.5 1.5 2.5", "longdash": "8 3"}
_DASH_ARRAYS["longdashdot"] = "8 2.5 1.5 2.5"


@register.simple_tag
def swatch(place: int) -> SafeString:
    """The colour and dash of the line at a place."""
    dashes = _DASH_ARRAYS[dash_of(place)]
    return format_html(
        '<svg class="swatch-line stroke--{}" viewBox="0 0 18 4" aria-hidden="true">'
        '<path d="M0 2h18" stroke-dasharray="{}"/></svg>',
        place % len(PALETTE),
        dashes,
    )


@register.simple_tag
def state_pill(state: str) -> SafeString:
    """A job's or an attempt's state."""
    return pill(state, str(STATE_LABELS[State(state)]))


@register.simple_tag
@lru_cache(maxsize=512)
def pill(kind: str, text: str) -> SafeString:
    """A word with its shape and colour."""
    return format_html('<span class="pill pill--{}">{} {}</span>', kind, icon(kind), text)


def significant(value: float, digits: int = 4) -> str:
    """A number with as many digits as matter, grouped by thousands, never in exponents where they can be avoided."""
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: "−∞"}.get(value, "NaN")
    size = abs(value)
    if size >= 10 ** (digits - 1) or value == int(value):
        # Rounded first: number_format cuts digits off.
        whole = number_format(round(value), use_l10n=True, force_grouping=True)
        return whole if size < 1e12 else f"{value:.{digits - 1}e}"
    if 0 < size < 1e-4:
        return f"{value:.{digits - 1}g}"
    return f"{value:.{max(0, digits - 1 - math.floor(math.log10(size)))}f}"


def is_known(value: Any) -> bool:
    """Whether there is a value; what a template does not find comes as an empty text."""
    return value is not None and value != ""


@register.filter
def in_words(finding: Finding) -> str:
    """A finding's sentence in the reader's language."""
    return translate(finding)


@register.filter
def num(value: float | None, digits: int = 4) -> str:
    """A number, or a dash where there is none."""
    return ABSENT if value is None or not is_known(value) else significant(float(value), digits)


@register.simple_tag
def figure(value: float | None, unit: str = "", digits: int = 4) -> SafeString | str:
    """A number with its unit in small print."""
    if value is None or not is_known(value):
        return format_html('<span class="muted">{}</span>', ABSENT)
    text = significant(float(value), digits)
    return format_html('{} <span class="unit">{}</span>', text, unit) if unit else text


@register.simple_tag
def memory(size_bytes: float | None) -> SafeString | str:
    """Bytes in MiB, from one GiB on in GiB."""
    if size_bytes is None or not is_known(size_bytes):
        return figure(None)
    return figure(size_bytes / 2**30, "GiB", 3) if size_bytes >= 2**30 else figure(size_bytes / 2**20, "MiB", 3)


@register.simple_tag
def per_second(rate: Rate) -> SafeString:
    """What a device was measured to reach, with its datasheet's figure where there is one."""
    name, unit, scale = (rate.arithmetic, "TFLOP/s", 1e12) if rate.arithmetic else (gettext("copy"), "GB/s", 1e9)
    values = significant(rate.reached_per_s / scale, 3)
    if rate.peak_per_s is not None:
        peak = significant(rate.peak_per_s / scale, 3)
        values = gettext("%(reached)s of %(peak)s") % {"reached": values, "peak": peak}
    return format_html('{} {} <span class="unit">{}</span>', name, values, unit)


@register.filter
def is_sentence(value: Any) -> bool:
    """Whether a figure is told in words, which want more room than a number."""
    return isinstance(value, list) or (isinstance(value, str) and value.endswith("."))


@register.simple_tag
def metric_value(name: str, value: Any) -> SafeString | str:
    """One figure of a summary by its name, as its unit wants it."""
    unit = metadata(Summary.model_fields[name]).get("unit", "")
    if value is None or isinstance(value, str):
        return value or figure(None)
    if isinstance(value, bool):
        return option_value(value)
    if isinstance(value, list):
        return " ".join(value) or gettext("nothing")
    if name == "eval_accuracy":
        return figure(value * 100, "%")
    if unit == "bytes":
        return memory(value)
    if unit.startswith("FLOP"):
        return figure(value / 1e9, f"G{unit}", 3)
    return figure(value, unit, 3) if unit in ("s", "ms") else figure(value, unit)


@register.filter
def duration(seconds: float | None) -> str:
    """A span of time in the unit that suits it."""
    if seconds is None or not is_known(seconds):
        return ABSENT
    if seconds < 1:
        return gettext("%(n)s ms") % {"n": round(seconds * 1000)}
    if seconds < 60:
        return gettext("%(n)s s") % {"n": significant(seconds, 3)}
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return gettext("%(m)s min %(s)s s") % {"m": minutes, "s": f"{rest:02d}"}
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return gettext("%(h)s h %(m)s min") % {"h": hours, "m": f"{minutes:02d}"}
    return gettext("%(d)s d %(h)s h") % {"d": hours // 24, "h": hours % 24}


@register.simple_tag
def ago(when: datetime | None) -> SafeString | str:
    """How long ago, kept up to date by the page's script, with the full time behind it."""
    if not when:
        return ABSENT
    return format_html(
        '<time class="nowrap" datetime="{}" title="{}" data-ago>{}</time>',
        when.isoformat(timespec="seconds"),
        when.strftime("%Y-%m-%d %H:%M:%S UTC"),
        _age((timezone.now() - when).total_seconds()),
    )


def _age(seconds: float) -> str:
    if seconds >= 86400:
        return gettext("%(n)sd ago") % {"n": int(seconds // 86400)}
    if seconds >= 3600:
        return gettext("%(n)sh ago") % {"n": int(seconds // 3600)}
    if seconds >= 60:
        return gettext("%(n)sm ago") % {"n": int(seconds // 60)}
    return gettext("%(n)ss ago") % {"n": max(0, int(seconds))}


@register.filter
def option_value(value: Any) -> str:
    """A spec field's value as people write it."""
    if value is None:
        return ABSENT
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    if isinstance(value, int):
        return significant(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


@register.simple_tag
def spread(name: str, cell: Cell, band: Band) -> SafeString | str:
    """How far repeats lie apart, and how many they are."""
    if cell.spread is None:
        return ""
    if cell.spread.n < 2:
        around = ""
    elif band is Band.RANGE:
        ends = (metric_value(name, cell.spread.low), metric_value(name, cell.spread.high))
        around = format_html("{}–{}", *ends)
    else:
        reach = cell.spread.high - cell.spread.mean
        is_wide = band is Band.INTERVAL and reach > abs(cell.spread.mean) * (WIDEST_FACTOR - 1)
        around = more_repeats() if is_wide else format_html("± {}", metric_value(name, reach))
    return format_html('<span class="spread">{} <span class="unit">n={}</span></span>', around, cell.spread.n)


_VERDICTS = {
    Verdict.BETTER: _("better"),
    Verdict.WORSE: _("worse"),
    Verdict.DIFFERENT: _("differs"),
    Verdict.TIE: _("tie"),
    Verdict.TOO_NOISY: _("too noisy here"),
}


@register.simple_tag
def against(name: str, cell: Cell) -> SafeString | str:
    """A cell's difference and ratio to the baseline, coloured by what is better, with the verdict of repeats."""
    if cell.delta is None:
        return ""
    sign = "+" if cell.delta > 0 else "−" if cell.delta < 0 else "±"
    ratio = "" if cell.ratio is None else f"{significant(cell.ratio, 3)}×"
    verdict = _("too few pairs") if _lacks_pairs(cell) else _VERDICTS.get(cell.verdict) if cell.verdict else None
    return format_html(
        '<span class="against against--{}" title="{}">{}{} <b>{}</b>{}</span>',
        _manner(cell),
        _interval_in_words(cell),
        sign,
        metric_value(name, abs(cell.delta)),
        ratio,
        format_html(" <em>{}</em>", verdict) if verdict else "",
    )


def _lacks_pairs(cell: Cell) -> bool:
    """Whether repeats stand there of which fewer than two share a seed with the baseline's."""
    return cell.verdict is Verdict.TOO_FEW and cell.spread is not None and cell.spread.n > 1


def _manner(cell: Cell) -> str:
    if cell.verdict in (Verdict.TIE, Verdict.TOO_NOISY) or cell.is_better is None or _lacks_pairs(cell):
        return "even"
    return "better" if cell.is_better else "worse"


def _interval_in_words(cell: Cell) -> str:
    if cell.interval is None:
        return gettext("Fewer than two pairs of runs with the same seed: no verdict.")
    return ratio_interval_words(cell.interval)


@register.filter
def interval_of(ratio: RatioInterval) -> str:
    """The 99 % interval of a ratio in words, to stand behind it."""
    return interval_words(ratio.low, ratio.high, ratio.n, confidence=99, show=lambda end: significant(end, 3))


@register.filter
def get(mapping: dict[str, Any], key: str) -> Any:
    """The value under a key that a variable holds."""
    return mapping.get(key)


@register.simple_tag
def has_signed_in(user: Any) -> bool:
    """Whether the page knows its reader; error pages may not."""
    return bool(user) and user.is_authenticated


@register.filter
def percent_of(value: float | None, total: float | None) -> str:
    """A share for a bar's width, 0 to 100."""
    return f"{min(100.0, 100 * (value or 0) / total):.1f}" if total else "0"


@register.filter
def up_to(count: int, most: int) -> str:
    """A count that was taken no further than `most`."""
    return f"{significant(most)}+" if count > most else significant(count)


@register.filter
def gib(size_bytes: int) -> str:
    """Bytes in GiB without the unit, where it stands beside."""
    return significant(size_bytes / 2**30, 2)


@register.filter
def about(seconds: float | None) -> str:
    """A span of time as roughly as it is known; a dash where it is not."""
    if seconds is None:
        return ABSENT
    return gettext("now") if seconds < 1 else roughly(seconds)


@register.filter
def way_back(message: Message) -> dict[str, Any] | None:
    """The form that undoes what a message tells of, None where nothing does (see `jobs.views.doing`)."""
    return json.loads(message.extra_tags) if message.extra_tags else None
