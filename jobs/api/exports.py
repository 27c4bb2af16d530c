"""A job's points as a file, streamed."""

from collections.abc import AsyncIterator, Iterator
from typing import Any, Literal

import ninja
from asgiref.sync import sync_to_async
from django.http import HttpRequest, StreamingHttpResponse
from pydantic import Field

from jobs.api.curves import router
from jobs.api.errors import ErrorsOut, refusal
from jobs.api.jobs import visible_job
from jobs.api.queries import Query
from jobs.contract.messages import gettext_noop as _
from jobs.exports import FORMATS
from jobs.models import Attempt
from jobs.selectors.curves import series_names
from jobs.selectors.exports import exported_series, origin_of


class PointsQuery(Query):
    """Which points, and as what."""

    format: Literal["csv", "jsonl", "parquet", "tensorboard"] = Field("csv", description="The kind of file.")
    series: str = Field("", max_length=2000, description="Names of series, separated by commas; all where left out.")


@router.get(
    "/jobs/{int:job_id}/points",
    response={200: str, 401: ErrorsOut, 404: ErrorsOut, 409: ErrorsOut, 422: ErrorsOut},
    summary="Download a job's points",
)
def get_points(request: HttpRequest, job_id: int, query: ninja.Query[PointsQuery]) -> Any:
    """Every stored point of the job's last attempt with what it inherited, a row each; names end with their units."""
    job = visible_job(request, job_id)
    kind, origin = FORMATS[query.format], origin_of(job)
    names = _chosen_series(job.last_attempt, query.series)
    parts = kind.write(origin, exported_series(job.last_attempt, names))
    file_name = kind.file_name.format(job=job.pk, seconds=int(origin.began_at.timestamp()))
    response = StreamingHttpResponse(_in_thread(parts), content_type=kind.content_type)
    response["Content-Disposition"] = f'attachment; filename="{file_name}"'
    return response


def _chosen_series(attempt: Attempt | None, text: str) -> list[str]:
    known = series_names(attempt) if attempt else []
    wanted = [name.strip() for name in text.split(",") if name.strip()]
    for name in wanted:
        if name not in known:
            raise refusal("series", "unknown_series", _("The job has no series “%(name)s”."), name=name)
    return wanted or known


async def _in_thread(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Each part is read and written where requests are served, so that the loop stays free meanwhile."""
    take = sync_to_async(lambda: next(parts, None))
    while (part := await take()) is not None:
        yield part
