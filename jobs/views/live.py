"""The stream of what changes on a page."""

from asgiref.sync import sync_to_async
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseBase, StreamingHttpResponse

from jobs.live import Topics, stream
from jobs.models import User
from jobs.selectors.jobs import teams_of, visible_jobs
from jobs.selectors.studies import visible_studies
from jobs.views.access import person

# A page shows far fewer jobs; more would only be asked for by mistake.
_MOST_JOBS = 200


async def live(request: HttpRequest) -> HttpResponseBase:
    """Server-sent events for `?topics=job:12,jobs,fleet,queue:3,study:4`; access is checked before the first byte.

    A job that went while the page was not connected is told to be gone: the page follows the others all the same.
    """
    topics = await sync_to_async(_allowed_topics)(request)
    response = StreamingHttpResponse(stream(topics), content_type="text/event-stream")
    response["Cache-Control"] = "no-cache, no-transform"
    response["X-Accel-Buffering"] = "no"
    return response


def _allowed_topics(request: HttpRequest) -> Topics:
    user = person(request)
    names = [name for name in request.GET.get("topics", "").split(",") if name]
    ids = _numbers("job:", names)
    if "fleet" in names and not user.is_staff:
        raise PermissionDenied
    seen = frozenset(visible_jobs(user).filter(pk__in=ids).values_list("pk", flat=True))
    studies = _numbers("study:", names)
    if visible_studies(user).filter(pk__in=studies).count() != len(studies):
        raise Http404
    return Topics(
        jobs=seen,
        gone=frozenset(ids - seen),
        job_list="jobs" in names,
        teams=team_ids(user),
        fleet="fleet" in names,
        queue=_queue_id(names),
        studies=frozenset(studies),
    )


def _numbers(prefix: str, names: list[str]) -> set[int]:
    parts = [name.removeprefix(prefix) for name in names if name.startswith(prefix)][:_MOST_JOBS]
    if not all(part.isascii() and part.isdigit() and len(part) < 19 for part in parts):
        raise Http404
    return {int(part) for part in parts}


def _queue_id(names: list[str]) -> int | None:
    """The queue whose page it is; its version tells nobody more than that something changed."""
    ids = _numbers("queue:", names)
    return min(ids, default=None)


def team_ids(user: User) -> frozenset[int] | None:
    """The teams whose jobs the user's list shows; None for all."""
    return None if user.is_staff else frozenset(teams_of(user).values_list("pk", flat=True))
