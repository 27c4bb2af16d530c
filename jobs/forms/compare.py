"""What an address of the comparison asks for: all of the page's state, so that a link shows the same to a colleague."""

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.translation import gettext

from jobs.contract.metrics import Summary
from jobs.selectors.columns import CONFIGURATION, is_field
from jobs.selectors.overlay import Axis, View
from jobs.smoothing import LIMITS, Smoothing
from jobs.statistics import Band

Choice = TypeVar("Choice", bound=StrEnum)

MOST_SERIES = 6

# The metrics that a chart of two and one of repeats begin with.
_ACROSS, _UP = "steady_step_time_ms", "final_eval_loss"


@dataclass(frozen=True)
class CompareQuery:
    """Job ids in the order asked for, without doubles; `remarks` say what could not be read and was left out."""

    job_ids: list[int]
    series: list[str]
    x: str = Axis.STEP
    x_from: float | None = None
    x_to: float | None = None
    x_log: bool = False
    y_log: bool = False
    smoothing: Smoothing = Smoothing.NONE
    amount: float = 0.0
    group: str = ""
    legend: str = ""
    band: Band = Band.STANDARD_DEVIATION
    baseline: int | None = None
    shows_all: bool = False  # also what is the same in all jobs
    other: str = ""  # the series that is told at the step where the first one was best
    across: str = _ACROSS
    up: str = _UP
    heights: dict[str, tuple[float, float]] = field(
        default_factory=dict
    )  # by series, what of the vertical axis is seen
    off: list[int] = field(default_factory=list)  # lines that are switched off, each by its first job
    opened: int | None = None  # the saved view that was opened
    unreadable: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @classmethod
    def from_query(cls, query: QueryDict) -> "CompareQuery":
        """Read an address. Nothing in it is an error: what is unknown falls back and is remarked on."""
        reading = _Reading(query)
        parts = reading.parts("jobs")
        smoothing = reading.one_of(Smoothing, "smooth", Smoothing.NONE)
        series = [name[:100] for name in dict.fromkeys(reading.parts("series"))][:MOST_SERIES] or ["train_loss"]
        return cls(
            job_ids=list(dict.fromkeys(int(part) for part in parts if _is_id(part))),
            unreadable=[part for part in parts if not _is_id(part)],
            series=series,
            x=(query.get("x") or Axis.STEP)[:100],
            x_from=reading.number("from"),
            x_to=reading.number("to"),
            x_log=query.get("xlog") == "1",
            y_log=query.get("ylog") == "1",
            smoothing=smoothing,
            amount=_amount(smoothing, reading.number("amount")),
            group=reading.field("group", CONFIGURATION),
            legend=reading.field("legend"),
            band=reading.one_of(Band, "band", Band.STANDARD_DEVIATION),
            baseline=reading.identity("baseline"),
            shows_all=query.get("all") == "1",
            other=query.get("other", "")[:100],
            across=reading.metric("across", _ACROSS),
            up=reading.metric("up", _UP),
            heights=reading.heights("y", series),
            off=list(dict.fromkeys(int(part) for part in reading.parts("off") if _is_id(part))),
            opened=reading.identity("view"),
            remarks=reading.remarks,
        )

    def view(self, series: str) -> View:
        """What is to be seen of one series."""
        return View(
            series, self.x, self.x_from, self.x_to, self.smoothing, self.amount, self.group, self.legend, self.band
        )

    @property
    def stored(self) -> str:
        """The address as a saved view keeps it; defaults are left out."""
        return self.address(view=None)

    def address(self, **changes: object) -> str:
        """The query string of the same page with some of its state changed; None takes a part away."""
        state: dict[str, object] = {
            "jobs": ",".join(str(pk) for pk in self.job_ids),
            "series": ",".join(self.series) if self.series != ["train_loss"] else None,
            "x": self.x if self.x != Axis.STEP else None,
            "from": None if self.x_from is None else f"{self.x_from:.15g}",
            "to": None if self.x_to is None else f"{self.x_to:.15g}",
            "xlog": "1" if self.x_log else None,
            "ylog": "1" if self.y_log else None,
            "smooth": self.smoothing.value if self.smoothing is not Smoothing.NONE else None,
            "amount": f"{self.amount:g}" if self.smoothing is not Smoothing.NONE else None,
            "group": self.group or None,
            "legend": self.legend or None,
            "band": self.band.value if self.band is not Band.STANDARD_DEVIATION else None,
            "baseline": self.baseline,
            "all": "1" if self.shows_all else None,
            "other": self.other or None,
            "across": self.across if self.across != _ACROSS else None,
            "up": self.up if self.up != _UP else None,
            "y": ",".join(f"{name}:{low:.15g}:{high:.15g}" for name, (low, high) in self.heights.items()) or None,
            "off": ",".join(str(pk) for pk in self.off) or None,
            "view": self.opened,
        }
        return urlencode({name: value for name, value in (state | changes).items() if value is not None}, safe=",:")


class _Reading:
    """Reads one address; keeps what it could not make sense of as remarks."""

    def __init__(self, query: QueryDict) -> None:
        self._query = query
        self.remarks: list[str] = []

    def parts(self, name: str) -> list[str]:
        """Values, repeated or separated by commas."""
        return [part.strip() for value in self._query.getlist(name) for part in value.split(",") if part.strip()]

    def number(self, name: str) -> float | None:
        """A finite number; None where there is none."""
        try:
            value = float(self._query.get(name, ""))
        except ValueError:
            return None
        return value if math.isfinite(value) else None

    def identity(self, name: str) -> int | None:
        """The number of a job."""
        text = self._query.get(name, "")
        return int(text) if _is_id(text) else None

    def one_of(self, choices: type[Choice], name: str, default: Choice) -> Choice:
        """A member of an enumeration."""
        text = self._query.get(name, "")
        if text and text not in list(choices):
            self._remark(name, text)
        return choices(text) if text in list(choices) else default

    def field(self, name: str, *more: str) -> str:
        """The name of a field that jobs have."""
        text = self._query.get(name, "")
        if not text or is_field(text) or text in more:
            return text
        self._remark(name, text)
        return ""

    def metric(self, name: str, default: str) -> str:
        """The name of a figure of the summary."""
        text = self._query.get(name, "")
        if text and text not in Summary.model_fields:
            self._remark(name, text)
        return text if text in Summary.model_fields else default

    def heights(self, name: str, series: list[str]) -> dict[str, tuple[float, float]]:
        """What of the vertical axis is seen, of these series where it is told: `train_loss:0.5:2`."""
        found = dict(height for part in self.parts(name) if (height := _height(part)))
        return {each: found[each] for each in series if each in found}

    def _remark(self, name: str, text: str) -> None:
        self.remarks.append(
            gettext("“%(text)s” is no known choice of “%(name)s” and was left out.") % {"text": text[:40], "name": name}
        )


def _amount(smoothing: Smoothing, amount: float | None) -> float:
    if smoothing is Smoothing.NONE:
        return 0.0
    least, most, default = LIMITS[smoothing]
    return default if amount is None else min(most, max(least, amount))


def _height(text: str) -> tuple[str, tuple[float, float]] | None:
    """A series with the range of its values; None where the text is no such thing."""
    name, *texts = text.rsplit(":", 2)
    try:
        low, high = (float(end) for end in texts)
    except ValueError:
        return None
    ends = (low, high)
    return (name[:100], ends) if all(map(math.isfinite, ends)) and ends[0] < ends[1] else None


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19
