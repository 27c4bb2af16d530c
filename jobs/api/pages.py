"""Pages by key: a cursor holds the last row's place, so that a page costs the same however deep it lies."""

import base64
import binascii
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F, Q, QuerySet

from jobs.api.errors import refusal
from jobs.contract.messages import gettext_noop as _
from jobs.models import Job
from jobs.models.attempt import RANKED_METRICS

# What jobs can be ordered by: their own columns, and the ranked figures of their last attempt.
# Times that the database itself writes are left out: SQLite keeps them to the millisecond, as a text that is not equal
# to the same time as Python writes it, so that a page would not find its end.
_COLUMNS = {"id": "id", "created_at": "created_at", "name": "name", "state": "state"} | {
    name: f"last_attempt__{name}" for name in RANKED_METRICS
}
_DATES = {"created_at"}
ORDERS = [sign + name for name in _COLUMNS for sign in ("", "-")]


@dataclass(frozen=True)
class Order:
    """One order of jobs; jobs without a value come last, and equal ones newest first."""

    name: str
    descending: bool

    @property
    def column(self) -> str:
        """The column's path from a job."""
        return _COLUMNS[self.name]

    def apply(self, jobs: QuerySet[Job]) -> QuerySet[Job]:
        """The jobs in this order."""
        if self.name == "id":
            return jobs.order_by("-id" if self.descending else "id")
        column = F(self.column)
        key = column.desc(nulls_last=True) if self.descending else column.asc(nulls_last=True)
        return jobs.order_by(key, "-id")

    def value(self, job: Job) -> Any:
        """Where the job stands in this order."""
        value: Any = job
        for name in self.column.split("__"):
            value = getattr(value, name) if value is not None else None
        return value

    def after(self, value: Any, job_id: int) -> Q:
        """The jobs that come after the one with this value and id."""
        if self.name == "id":
            return Q(id__lt=job_id) if self.descending else Q(id__gt=job_id)
        if value is None:
            return Q(**{f"{self.column}__isnull": True}, id__lt=job_id)
        beyond = Q(**{f"{self.column}__{'lt' if self.descending else 'gt'}": value})
        return beyond | Q(**{self.column: value}, id__lt=job_id) | Q(**{f"{self.column}__isnull": True})


def parse_order(text: str) -> Order:
    """An order such as `-created_at`; raises `InvalidRequest` for `order_by`."""
    name = text.removeprefix("-")
    if name not in _COLUMNS:
        raise refusal("order_by", "enum", _("Must be one of %(expected)s."), expected=", ".join(ORDERS))
    return Order(name, text.startswith("-"))


def page_of_jobs(jobs: QuerySet[Job], order_by: str, limit: int, cursor: str) -> tuple[list[Job], str | None]:
    """One page and the next one's cursor, None where this is the last; raises `InvalidRequest` for `cursor`."""
    order = parse_order(order_by)
    if cursor:
        jobs = jobs.filter(order.after(*_parse_cursor(cursor, order)))
    page = list(order.apply(jobs)[: limit + 1])
    if len(page) <= limit:
        return page, None
    return page[:limit], _cursor(order, page[limit - 1])


def _cursor(order: Order, job: Job) -> str:
    value = order.value(job)
    text = json.dumps(
        [order.name, order.descending, value.isoformat() if order.name in _DATES and value else value, job.pk]
    )
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _parse_cursor(cursor: str, order: Order) -> tuple[Any, int]:
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        name, descending, value, job_id = json.loads(text)
        if (name, descending) != (order.name, order.descending) or type(job_id) is not int:
            raise ValueError("the cursor belongs to another order")
        return _kind(order)(value) if value is not None else None, job_id
    except (binascii.Error, ValueError, TypeError) as error:
        raise refusal(
            "cursor", "bad_cursor", _("This is no cursor of this list. Take `next_cursor` from the page before.")
        ) from error


def _kind(order: Order) -> Callable[[Any], Any]:
    """Makes the order's value out of what stood in a cursor; raises where it is none."""
    if order.name in _DATES:
        return datetime.fromisoformat
    if order.name in RANKED_METRICS:
        return float
    return str if order.name in {"name", "state"} else int
