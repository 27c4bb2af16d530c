"""Pages of runs by key: in any order, at any depth, among a million.

A list sorted by a ranked figure is read from one end of an index, for each team by itself, and the teams' heads are
merged. That is quick where many runs match. Where few do, the walk could pass by all others: then these few are found
first, by what they are narrowed to, and sorted. How many match is counted anyhow, no further than is shown.
"""

import base64
import binascii
import heapq
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from django.db.models import F, Q, QuerySet
from django.db.models.lookups import Exact, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual
from django.utils.translation import gettext

from jobs.models import Job, User
from jobs.selectors.jobs import teams_of
from jobs.selectors.line import count_up_to
from jobs.selectors.run_fields import Kind, RunField, find_field, run_fields
from jobs.selectors.run_query import RunQuery, condition

FEW = 2000  # as many as are sorted by themselves without being noticed
_MOST_TEAMS = 50  # more than these are not walked one by one

Place = tuple[Any, int]  # a run's value in an order, and its number
Reading = Callable[[QuerySet[Job], Place | None, int], list[Place]]  # a list's next places behind one


class UnknownOrder(ValueError):
    """No order of that name; the text says what there is."""


class BadCursor(ValueError):
    """A cursor that is none of this list."""


@dataclass(frozen=True)
class Order:
    """One order of runs. Those without a value come last, newest first; among equals the number decides."""

    by: RunField
    descending: bool

    def __str__(self) -> str:
        return f"{'-' if self.descending else ''}{self.by.name}"

    def places(self, jobs: QuerySet[Job], after: Place | None, limit: int) -> list[Place]:
        """The next ones that have a value."""
        expression: Any = self.by.expression
        jobs = jobs.order_by().annotate(place=expression)
        if self.by.can_be_empty:
            jobs = jobs.filter(place__isnull=False)
        if after:
            jobs = jobs.filter(self._beyond(expression, *after))
        sign = "-" if self.descending else ""
        order = [f"{sign}place", f"{sign}pk"] if self.by.name != "id" else [f"{sign}pk"]
        return list(jobs.order_by(*order).values_list("place", "pk")[:limit])

    def places_without_value(self, jobs: QuerySet[Job], after: Place | None, limit: int) -> list[Place]:
        """The next ones that have none."""
        expression: Any = self.by.expression
        below = Q(pk__lt=after[1]) if after and after[0] is None else Q()
        rest = jobs.order_by().annotate(place=expression).filter(below, place__isnull=True)
        return [(None, job_id) for job_id in rest.order_by("-pk").values_list("pk", flat=True)[:limit]]

    def _beyond(self, expression: Any, value: Any, job_id: int) -> Q:
        """One bound that an index can use, then the rest of the condition."""
        at_least, beyond = (LessThanOrEqual, LessThan) if self.descending else (GreaterThanOrEqual, GreaterThan)
        if self.by.name == "id":
            return Q(beyond(F("id"), job_id))
        return Q(at_least(expression, value)) & (
            Q(beyond(expression, value)) | Q(Exact(expression, value), beyond(F("id"), job_id))
        )


def parse_order(text: str) -> Order:
    """An order such as `-created`; raises `UnknownOrder`."""
    by = find_field(text.removeprefix("-"))
    if by is None or not by.can_sort:
        raise UnknownOrder(text)
    return Order(by, text.startswith("-"))


def order_names() -> list[str]:
    """What runs can be sorted by."""
    return [name for name, each in run_fields().items() if each.can_sort]


class RunList:
    """The runs that a person sees and that match a query, in one order."""

    def __init__(self, query: RunQuery, order: Order, user: User) -> None:
        self.order = order
        teams = _teams_in(query, user)
        self._matching = query.apply(Job.objects.filter(team__in=teams), user)
        self.count = count_up_to(self._matching)  # no further than one more than `MOST_COUNTED`
        self._streams = self._split(query, teams, user)

    def _split(self, query: RunQuery, teams: list[int], user: User) -> list[QuerySet[Job]]:
        """Lists that are each read in order without sorting all of it."""
        if self.count <= FEW:
            return [Job.objects.filter(pk__in=list(self._matching.order_by().values_list("pk", flat=True)[:FEW]))]
        if not self.order.by.is_indexed or len(teams) > _MOST_TEAMS:
            return [self._matching]
        return [query.apply(Job.objects.filter(team=team), user) for team in teams]

    def page(self, limit: int, cursor: str = "") -> tuple[list[int], str | None]:
        """Numbers of the next runs, and the cursor of what follows them, None on the last page; raises `BadCursor`."""
        after = parse_cursor(cursor, self.order) if cursor else None
        places = self._valued(after, limit + 1) if after is None or after[0] is not None else []
        if len(places) <= limit and self.order.by.can_be_empty:
            places += self._without_value(after, limit + 1 - len(places))
        ids = [job_id for _value, job_id in places[:limit]]
        return ids, make_cursor(places[limit - 1], self.order) if len(places) > limit else None

    def _valued(self, after: Place | None, limit: int) -> list[Place]:
        return self._merged(self.order.places, after, limit, descending=self.order.descending)

    def _without_value(self, after: Place | None, limit: int) -> list[Place]:
        return self._merged(self.order.places_without_value, after, limit, descending=True)

    def _merged(self, read: Reading, after: Place | None, limit: int, *, descending: bool) -> list[Place]:
        """The first places of all lists. Each is read in pieces, no further than it is needed."""
        piece = limit if len(self._streams) == 1 else 2 * limit // max(1, len(self._streams)) + 5
        walks = [_walk(read, stream, after, piece) for stream in self._streams]
        return list(islice(heapq.merge(*walks, reverse=descending), limit))


def _walk(read: Reading, stream: QuerySet[Job], after: Place | None, piece: int) -> Iterator[Place]:
    """A list's places one after the other, read in pieces."""
    while found := read(stream, after, piece):
        yield from found
        if len(found) < piece:
            return
        after = found[-1]


def _teams_in(query: RunQuery, user: User) -> list[int]:
    """The teams whose runs the person sees and the query does not rule out."""
    teams = teams_of(user)
    for term in query.teams:
        teams = teams.filter(name__in=term.values)
    for term in query.owners:
        # The list of a team in which they own nothing would be read to its end to find that out.
        teams = teams.filter(pk__in=Job.objects.filter(condition(term, user)).values("team"))
    return list(teams.order_by("pk").values_list("pk", flat=True))


def make_cursor(place: Place, order: Order) -> str:
    """The place as a text for addresses."""
    value, job_id = place
    plain = value.isoformat() if isinstance(value, datetime) else value
    text = json.dumps([str(order), plain, job_id])
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def parse_cursor(cursor: str, order: Order) -> Place:
    """The place in a cursor; raises `BadCursor` where it is none of this order."""
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        name, value, job_id = json.loads(text)
        if name != str(order) or type(job_id) is not int or not 0 <= job_id < 2**63:
            raise ValueError("the cursor belongs to another order")
        return _typed(order.by, value), job_id
    except (binascii.Error, ValueError, TypeError, RecursionError) as error:
        raise BadCursor(gettext("This is no place in this list. Begin at its first page.")) from error


def _typed(by: RunField, value: Any) -> Any:
    if value is None and by.can_be_empty:
        return None
    if by.kind is Kind.DATE:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            raise ValueError("a time without its zone")
        return moment
    if by.kind in (Kind.NUMBER, Kind.FLAG):
        if not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError("no number")
        return value
    if not isinstance(value, str) or "\0" in value:
        raise ValueError("no text that a database holds")
    return value


def in_order(jobs: QuerySet[Job], ids: Sequence[int]) -> list[Job]:
    """These runs, in this order; those that are gone meanwhile are left out."""
    found = jobs.in_bulk(ids)
    return [found[job_id] for job_id in ids if job_id in found]
