"""When a slower start pays off: after how many steps a run has caught up with the one it is held against."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.utils.formats import number_format
from django.utils.translation import gettext, ngettext

from jobs.selectors.baseline import CellRow
from jobs.selectors.columns import Column


@dataclass(frozen=True)
class Course:
    """A column's time by steps: what comes before the second step, and what each further one takes."""

    column: Column
    start_s: float  # first step, with compilation and the recording of a graph
    step_s: float
    pays_off_after: int | None  # steps until it is ahead of the reference; 0 from the start, None never
    words: str


def courses(columns: Sequence[Column], rows: Mapping[str, CellRow], reference: Column | None) -> list[Course]:
    """The course of every column that measured both; against `reference`, else against the first of them."""
    if not {"first_step_s", "steady_step_time_ms"} <= set(rows):
        return []
    known = [found for place, column in enumerate(columns) if (found := _times(place, column, rows))]
    base = next((found for found in known if found[0] is reference), known[0] if known else None)
    return [_course(found, base) for found in known if base]


def _times(place: int, column: Column, rows: Mapping[str, CellRow]) -> tuple[Column, float, float] | None:
    first_s, step_ms = rows["first_step_s"].cells[place].value, rows["steady_step_time_ms"].cells[place].value
    capture_s = rows["capture_s"].cells[place].value if "capture_s" in rows else None
    if not all(value is not None and math.isfinite(value) and value > 0 for value in (first_s, step_ms)):
        return None
    return column, first_s + (capture_s or 0.0), step_ms / 1000


def _course(own: tuple[Column, float, float], base: tuple[Column, float, float]) -> Course:
    column, start_s, step_s = own
    if own is base:
        return Course(column, start_s, step_s, 0, gettext("what the others are held against"))
    steps = break_even(start_s, step_s, base[1], base[2])
    return Course(column, start_s, step_s, steps, _words(steps))


def break_even(start_s: float, step_s: float, base_start_s: float, base_step_s: float) -> int | None:
    """Steps after the first until all in all less time was taken than by the base; 0 at once, None never."""
    lag_s, gain_s = start_s - base_start_s, base_step_s - step_s
    if lag_s <= 0 and gain_s >= 0:
        return 0
    if gain_s <= 0:
        return None
    return max(0, math.ceil(lag_s / gain_s))


def _words(steps: int | None) -> str:
    if steps is None:
        return gettext("does not pay off: its steps are no faster")
    if steps == 0:
        return gettext("pays off at once")
    count = number_format(steps, use_l10n=True, force_grouping=True)
    return ngettext("pays off after %(steps)s step", "pays off after %(steps)s steps", steps) % {"steps": count}
