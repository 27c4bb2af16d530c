"""The home page: what is on track now, and every job below it."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Case, IntegerField, QuerySet, Value, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from jobs.contract.states import LIVE_STATES
from jobs.forms import JobFilter
from jobs.live import list_version, read_open_jobs
from jobs.models import Job, Queue
from jobs.models.job import STATE_CHOICES
from jobs.selectors.hosts import known_catalog
from jobs.selectors.jobs import visible_jobs
from jobs.views.access import person
from jobs.views.live import team_ids
from jobs.views.rows import JobRow, job_row

PAGE_SIZE = 50
_MOST_CARDS = 4
_JUST_FINISHED = timedelta(minutes=30)


@dataclass(frozen=True)
class Page:
    """One page of the list, by key: the jobs after it begin below `older`."""

    rows: list[JobRow]
    older: int | None


def job_list(request: HttpRequest) -> HttpResponse:
    """The list; asked for by htmx, only its living part."""
    user = person(request)
    filters = JobFilter.from_query(request.GET)
    # Read before the rows, so that a change in between is seen as one.
    version = list_version(read_open_jobs(), team_ids(user))
    visible = visible_jobs(user)
    context: dict[str, Any] = {
        "filters": filters,
        "page": _page(filters.apply(visible, user), filters.before),
        "cards": [] if filters.before else _cards(visible),
        "version": version,
    }
    if request.headers.get("HX-Request"):
        return render(request, "jobs/_job_list.html", context)
    choices = {
        "act_queues": Queue.objects.all(),
        "states": STATE_CHOICES,
        "models": [info.name for info in known_catalog().models],
    }
    return render(request, "jobs/job_list.html", context | choices)


def _page(jobs: QuerySet[Job], before: int | None) -> Page:
    if before:
        jobs = jobs.filter(pk__lt=before)
    rows = list(jobs.order_by("-pk").defer("last_attempt__error", "last_attempt__findings")[: PAGE_SIZE + 1])
    older = rows[PAGE_SIZE - 1].pk if len(rows) > PAGE_SIZE else None
    return Page([job_row(job) for job in rows[:PAGE_SIZE]], older)


def _cards(jobs: QuerySet[Job]) -> list[JobRow]:
    """What runs, the newest first, then what has just finished."""
    running = jobs.filter(state__in=LIVE_STATES)
    finished = jobs.filter(ended_at__gte=timezone.now() - _JUST_FINISHED, last_attempt__num_points__gt=0)
    order = Case(When(ended_at=None, then=Value(0)), default=Value(1), output_field=IntegerField())
    return [job_row(job) for job in (running | finished).order_by(order, "-ended_at", "-pk")[:_MOST_CARDS]]
