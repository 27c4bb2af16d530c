"""The home page: what is on track now, and every run below it."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from jobs.contract.states import LIVE_STATES
from jobs.forms import RunListAddress
from jobs.forms.run_list import added_term, known_columns, possible_columns
from jobs.live import list_version, read_open_jobs
from jobs.models import Queue, User, ViewPage
from jobs.selectors.line import MOST_COUNTED
from jobs.selectors.run_fields import run_fields
from jobs.selectors.run_pages import BadCursor, RunList, in_order
from jobs.services.run_columns import remember_columns
from jobs.views.access import person
from jobs.views.live import team_ids
from jobs.views.rows import JobRow, job_row, listed_jobs
from jobs.views.run_filters import filter_menus, menu_choices, relaxations, removable_terms
from jobs.views.saved_views import views_menu

PAGE_SIZE = 100
_MOST_CARDS = 4
_JUST_FINISHED = timedelta(minutes=30)


@dataclass(frozen=True)
class Page:
    """One page of the list, by key: what follows begins at the cursor `next`, None on the last page."""

    rows: list[JobRow]
    next: str | None
    count: int  # of all that match, no further than one more than is shown
    is_first: bool


@dataclass(frozen=True)
class Column:
    """A column's head: where it leads when it is clicked, and how the list is sorted by it now."""

    name: str
    link: str  # empty where there is no order by it
    sorted: str  # ascending, descending or empty


def job_list(request: HttpRequest) -> HttpResponse:
    """The list; asked for by htmx, only its living part."""
    user = person(request)
    address = RunListAddress.from_query(request.GET, user.run_columns)
    if "field" in request.GET:
        text = f"{address.query.text} {added_term(request.GET)}".strip()
        return redirect(reverse("job-list") + address.link(q=text))
    # Read before the rows, so that a change in between is seen as one.
    version = list_version(read_open_jobs(), team_ids(user))
    context: dict[str, Any] = {
        "address": address,
        "columns": [_column(address, name) for name in address.columns],
        "column_names": address.columns,
        "page": (page := _page(address, user)),
        "relaxations": relaxations(address, user) if not page.count else [],
        "cards": _cards(user) if page.is_first else [],
        "version": version,
        "most_counted": MOST_COUNTED,
        "first_link": address.link(),
        "next_link": address.link(after=page.next or ""),
    }
    if request.headers.get("HX-Request"):
        return render(request, "jobs/_job_list.html", context)
    return render(request, "jobs/job_list.html", context | _choices(address, user))


def run_menu(request: HttpRequest, name: str) -> HttpResponse:
    """What stands in one menu of filters, when it is opened."""
    user = person(request)
    try:
        choices = menu_choices(RunListAddress.from_query(request.GET, user.run_columns), name, user)
    except KeyError as error:
        raise Http404 from error
    return render(request, "jobs/_filter_choices.html", {"choices": choices})


@require_POST
def job_columns(request: HttpRequest) -> HttpResponse:
    """Keep which columns the person wants (none: as at first); in a saved view they only stand in the address."""
    user, shown = person(request), RunListAddress.from_query(request.POST)
    names = known_columns(request.POST.getlist("columns"))
    if shown.view is None:
        remember_columns(user, names)
    return redirect(reverse("job-list") + shown.link(columns=",".join(names)))


def _choices(address: RunListAddress, user: User) -> dict[str, Any]:
    """What stands around the list."""
    return views_menu(user, ViewPage.LIST, address.view, address.stored) | {
        "act_queues": Queue.objects.all(),
        "menus": filter_menus(address),
        "terms": removable_terms(address),
        "other_columns": [name for name in possible_columns() if name not in address.columns],
        "csv_link": address.link(view=""),
        "reset_link": address.link(q="", view=""),
        "fields": [each for each in run_fields().values() if each.expression is not None or each.name == "tag"],
    }


def _page(address: RunListAddress, user: User) -> Page:
    runs = RunList(address.query, address.order, user)
    try:
        ids, following = runs.page(PAGE_SIZE, address.after)
        is_first = not address.after
    except BadCursor:
        (ids, following), is_first = runs.page(PAGE_SIZE), True
    rows = [job_row(job) for job in in_order(listed_jobs(user, address.columns), ids)]
    return Page(rows, following, runs.count, is_first)


def _column(address: RunListAddress, name: str) -> Column:
    field = run_fields()["id" if name == "job" else name] if name != "config" else None
    if field is None or not field.can_sort:
        return Column(name, "", "")
    is_sorted = address.order.by == field
    # The first click sorts figures from their small end and everything that is newest or counted from its large end.
    starts_descending = name in ("job", "created", "ended", "samples_per_s", "tokens_per_s", "eval_accuracy")
    descending = not address.order.descending if is_sorted else starts_descending
    link = address.link(sort=f"{'-' if descending else ''}{field.name}")
    return Column(name, link, ("descending" if address.order.descending else "ascending") if is_sorted else "")


def _cards(user: User) -> list[JobRow]:
    """What runs, the newest first, then what has just finished."""
    jobs = listed_jobs(user)
    cards = list(jobs.filter(outcome=None, state__in=LIVE_STATES).order_by("-pk")[:_MOST_CARDS])
    if len(cards) < _MOST_CARDS:
        finished = jobs.filter(ended_at__gte=timezone.now() - _JUST_FINISHED, last_attempt__num_points__gt=0)
        cards += finished.order_by("-ended_at", "-pk")[: _MOST_CARDS - len(cards)]
    return [job_row(job) for job in cards]
