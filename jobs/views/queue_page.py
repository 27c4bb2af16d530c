"""One queue: its line in order, what runs, who serves it, and what its owners and staff do there."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from jobs.contract.states import LIVE_STATES
from jobs.forms import QueueForm
from jobs.live import queue_versions, read_open_jobs
from jobs.models import Job, Queue
from jobs.selectors.audit import audit_line
from jobs.selectors.durations import measured_durations, remaining_s
from jobs.selectors.fleet import queue_state
from jobs.selectors.jobs import teams_of
from jobs.selectors.line import LineRow, line_page
from jobs.selectors.starts import estimate_starts
from jobs.services.queues import change_queue
from jobs.views.access import person, staff_only
from jobs.views.rows import Chip, chips, total_steps

_MOST_RUNNING = 50
_MOST_ACTS = 8


@dataclass(frozen=True)
class WaitingRow:
    """A line's row with what it asks for and when it may start."""

    row: LineRow
    chips: list[Chip]
    starts_in_s: float | None
    is_told: bool  # whether its start was played through at all


@dataclass(frozen=True)
class RunningRow:
    """A job that runs, and when it may end."""

    job: Job
    is_visible: bool
    total_steps: int | None
    ends_in_s: float | None


@require_GET
def queue_page(request: HttpRequest, name: str) -> HttpResponse:
    """The page; asked for by htmx, only its living part."""
    try:
        state = queue_state(name)
    except Queue.DoesNotExist as error:
        raise Http404 from error
    # Read before the rows, so that a change in between is seen as one.
    version = queue_versions(read_open_jobs()).get(state.queue.pk, "")
    context = {"state": state, "queue": state.queue, "version": version} | _context(request, state.queue)
    if request.headers.get("HX-Request"):
        return render(request, "fleet/_queue.html", context | {"is_part": True})
    own = {"form": QueueForm(instance=state.queue), "act_queues": Queue.objects.exclude(pk=state.queue.pk)}
    return render(request, "fleet/queue.html", context | own)


def _context(request: HttpRequest, queue: Queue) -> dict[str, Any]:
    after = request.GET.get("after", "")
    after_id = int(after) if after.isascii() and after.isdigit() and len(after) < 19 else None
    page = line_page(queue.pk, person(request), after_id)
    starts = estimate_starts(queue)
    rows = [
        WaitingRow(row, chips(row.job.spec) if row.is_visible else [], starts.get(row.job.pk), row.job.pk in starts)
        for row in page.rows
    ]
    acts = [audit_line(entry) for entry in queue.audit.all()[:_MOST_ACTS]] if person(request).is_staff else []
    return {"page": page, "rows": rows, "running": _running(request, queue), "acts": acts}


def _running(request: HttpRequest, queue: Queue) -> list[RunningRow]:
    user = person(request)
    jobs = Job.objects.filter(queue=queue, outcome=None, state__in=LIVE_STATES).order_by("pk")
    jobs = jobs.select_related("owner", "last_attempt__worker").prefetch_related("last_attempt__nodes__worker")[
        :_MOST_RUNNING
    ]
    teams = None if user.is_staff else set(teams_of(user).values_list("pk", flat=True))
    attempts = {job.last_attempt.pk: job.last_attempt for job in jobs if job.last_attempt}
    left = remaining_s(attempts.values(), measured_durations(), timezone.now()) if attempts else {}
    return [
        RunningRow(job, teams is None or job.team_id in teams, total_steps(job), left.get(job.last_attempt_id or 0))
        for job in jobs
    ]


@require_POST
@staff_only
def queue_change(request: HttpRequest, name: str) -> HttpResponse:
    """Set limits, default priority and description."""
    queue = get_object_or_404(Queue, name=name)
    form = QueueForm(request.POST, instance=get_object_or_404(Queue, name=name))
    if not form.is_valid():
        texts = [f"{form.fields[field].label}: {' '.join(map(str, errors))}" for field, errors in form.errors.items()]
        messages.error(request, " ".join(texts))
        return redirect("queue", queue.name)
    change_queue(queue, person(request), form.cleaned_data["reason"], **form.settings())
    messages.success(request, gettext("The settings of “%(name)s” are changed.") % {"name": queue.name})
    return redirect("queue", queue.name)
