"""What the runs list shows, read from its address, so that a link shows a colleague the same."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

from django.http import QueryDict

from jobs.selectors.run_fields import Kind, Part, RunField, run_fields
from jobs.selectors.run_pages import Order, UnknownOrder, parse_order
from jobs.selectors.run_query import RunQuery, parse_query, quoted

NEWEST_FIRST = "-id"

# Two columns that no single field fills: the name with what it does, and the options that differ from the defaults.
JOB, CONFIG = "job", "config"
DEFAULT_COLUMNS = (
    "state",
    JOB,
    CONFIG,
    "final_train_loss",
    "final_eval_loss",
    "steady_step_time_ms",
    "samples_per_s",
    "peak_rss_bytes",
    "owner",
    "created",
)
_MOST_COLUMNS = 60


@dataclass(frozen=True)
class RunListAddress:
    """The list's query, order, columns and place."""

    query: RunQuery = field(default_factory=RunQuery)
    order: Order = field(default_factory=lambda: parse_order(NEWEST_FIRST))
    columns: tuple[str, ...] = DEFAULT_COLUMNS
    after: str = ""  # a cursor of this order
    view: int | None = None  # the saved view that was opened
    own_columns: tuple[str, ...] = DEFAULT_COLUMNS  # what the person sees where an address names none

    @classmethod
    def from_query(cls, query: QueryDict, own_columns: str = "") -> "RunListAddress":
        """Read the address. An order or a column that there is not is left out; a query's faults stand in it.

        Where it names no columns, it shows the person's own ones; a saved view shows everybody the same.
        """
        view, own = query.get("view", ""), known_columns([own_columns]) or DEFAULT_COLUMNS
        opened = int(view) if view.isascii() and view.isdigit() and len(view) < 19 else None
        return cls(
            query=parse_query(query.get("q", "")),
            order=_order(query.get("sort", "")),
            columns=known_columns(query.getlist("columns")) or (DEFAULT_COLUMNS if opened else own),
            after=query.get("after", "")[:2000],
            view=opened,
            own_columns=own,
        )

    @property
    def stored(self) -> str:
        """The address without the place in the list, as a saved view keeps it; defaults are left out."""
        return urlencode(self._parts(names_columns=self.columns != DEFAULT_COLUMNS))

    @property
    def names_columns(self) -> bool:
        """Whether its links name the columns, so that they show a colleague the same."""
        return self.columns != DEFAULT_COLUMNS or self.own_columns != DEFAULT_COLUMNS

    def link(self, **changes: str) -> str:
        """The address with something changed, on the first page; an empty value leaves a part out."""
        view = {"view": str(self.view)} if self.view else {}
        parts = self._parts(names_columns=self.names_columns) | view | changes
        return f"?{urlencode({name: value for name, value in parts.items() if value})}"

    def _parts(self, *, names_columns: bool) -> dict[str, str]:
        parts = {"q": self.query.text or str(self.query)}
        parts["sort"] = str(self.order) if str(self.order) != NEWEST_FIRST else ""
        parts["columns"] = ",".join(self.columns) if names_columns else ""
        return {name: value for name, value in parts.items() if value}


def _order(text: str) -> Order:
    try:
        return parse_order(text or NEWEST_FIRST)
    except UnknownOrder:
        return parse_order(NEWEST_FIRST)


def known_columns(texts: Sequence[str]) -> tuple[str, ...]:
    """The columns that are named there, each once; what is none is left out."""
    names = dict.fromkeys(name.strip() for text in texts for name in text.split(","))
    known = {*possible_columns()}
    return tuple(name for name in names if name in known)[:_MOST_COLUMNS]


def possible_columns() -> dict[str, RunField | None]:
    """Every column by its name, with the field that fills it."""
    shown = {name: each for name, each in run_fields().items() if each.kind is not Kind.AGE}
    own = {name: each for name, each in shown.items() if each.part is Part.JOB}
    return {"state": own.pop("state"), JOB: None, CONFIG: None} | own | shown


def added_term(query: QueryDict) -> str:
    """The term that the page's small form asks to add, in the query's own words; empty where it names none."""
    of = run_fields().get(query.get("field", ""))
    if of is None:
        return ""
    value = query.get("value", "").replace("\0", "").strip()
    return f"{of.name}{query.get('sign', ':')}{quoted(value)}" if value else ""
