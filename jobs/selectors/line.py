"""The line of one queue: which jobs wait in it, in the order in which they will be taken."""

from dataclasses import dataclass

from django.db.models import Q, QuerySet

from jobs.contract.states import State
from jobs.models import Job, Study, User
from jobs.selectors.jobs import may_change, teams_of

PAGE_SIZE = 50

MOST_COUNTED = 10_000  # a longer line is shown as "10,000+"


def waiting_in(queue_id: int) -> QuerySet[Job]:
    """The jobs that wait in a queue, the next one first, whether it is paused or not."""
    waiting = Job.objects.filter(queue=queue_id, state=State.QUEUED, cancel_requested_at=None)
    return waiting.order_by("-priority", "order_key", "id")


def is_held() -> Q:
    """The jobs whose study is paused: they keep their places and wait until it is resumed."""
    return Q(study__in=Study.objects.exclude(paused_at=None))


def ahead_of(job: Job) -> Q:
    """The jobs that come before this one."""
    earlier = Q(order_key__lt=job.order_key) | Q(order_key=job.order_key, pk__lt=job.pk)
    return Q(priority__gt=job.priority) | Q(earlier, priority=job.priority)


def behind(job: Job) -> Q:
    """The jobs that come after this one."""
    later = Q(order_key__gt=job.order_key) | Q(order_key=job.order_key, pk__gt=job.pk)
    return Q(priority__lt=job.priority) | Q(later, priority=job.priority)


def place_of(job: Job) -> int:
    """The job's place in its queue's line, from 1; counted no further than `MOST_COUNTED` + 1."""
    return waiting_in(job.queue_id).filter(ahead_of(job))[:MOST_COUNTED].count() + 1


def count_up_to(jobs: QuerySet[Job], most: int = MOST_COUNTED) -> int:
    """How many there are, counted no further than one more than `most`."""
    return jobs.order_by()[: most + 1].count()


@dataclass(frozen=True)
class LineRow:
    """One waiting job and its place."""

    place: int
    job: Job
    is_visible: bool  # False: it is another team's, of which no more is told than that it waits
    may_change: bool


@dataclass(frozen=True)
class LinePage:
    """One page of the line, by key: the next one begins behind `next_after`, None on the last."""

    rows: list[LineRow]
    after: Job | None  # the job behind which this page begins; None on the first
    next_after: int | None


def line_page(queue_id: int, user: User, after_id: int | None = None) -> LinePage:
    """The line from its head, or from behind a job that still waits in it; four queries."""
    line = waiting_in(queue_id)
    after = line.filter(pk=after_id).first() if after_id is not None else None
    jobs = line.select_related("owner", "team", "study").defer("cancel_reason")
    rows = list((jobs.filter(behind(after)) if after else jobs)[: PAGE_SIZE + 1])
    teams = None if user.is_staff else set(teams_of(user).values_list("pk", flat=True))
    first = place_of(rows[0]) if rows and after else 1
    shown = [
        LineRow(place, job, teams is None or job.team_id in teams, may_change(user, job))
        for place, job in enumerate(rows[:PAGE_SIZE], start=first)
    ]
    return LinePage(shown, after, rows[PAGE_SIZE - 1].pk if len(rows) > PAGE_SIZE else None)
