"""All runs that match, as CSV with the list's columns: read and sent in pieces, however many they are."""

import csv
import io
import json
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.utils import timezone
from django.views.decorators.http import require_GET

from jobs.forms import RunListAddress
from jobs.forms.run_list import CONFIG, JOB
from jobs.models import Job, User
from jobs.selectors.run_fields import run_fields
from jobs.selectors.run_pages import RunList, in_order
from jobs.views.access import person
from jobs.views.rows import chips, listed_jobs

_AT_ONCE = 500


@require_GET
def job_csv(request: HttpRequest) -> HttpResponse | StreamingHttpResponse:
    """The whole list behind an address; 422 with the sentences where its query is not understood."""
    user = person(request)
    address = RunListAddress.from_query(request.GET, user.run_columns)
    if address.query.problems:
        return HttpResponse("\n".join(address.query.problems), status=422, content_type="text/plain; charset=utf-8")
    response = StreamingHttpResponse(_pieces(address, user), content_type="text/csv; charset=utf-8")
    name = f"pitwall-runs-{timezone.now():%Y-%m-%d}.csv"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


async def _pieces(address: RunListAddress, user: User) -> AsyncIterator[str]:
    names = csv_columns(address.columns)
    yield _lines([names])
    runs = await sync_to_async(RunList)(address.query, address.order, user)
    cursor: str | None = ""
    while cursor is not None:
        jobs, cursor = await sync_to_async(_piece)(runs, names, cursor, user)
        yield _lines([[csv_cell(_value(job, name)) for name in names] for job in jobs])


def csv_columns(names: Sequence[str]) -> list[str]:
    """The list's columns under the API's names; a run's number always comes first."""
    own = {JOB: ["name", "model", "dataset"], CONFIG: ["configuration"]}
    return list(dict.fromkeys(["id", *(part for name in names for part in own.get(name, [name]))]))


def _piece(runs: RunList, names: list[str], cursor: str, user: User) -> tuple[list[Job], str | None]:
    ids, following = runs.page(_AT_ONCE, cursor)
    return in_order(listed_jobs(user, names), ids), following


def _value(job: Job, name: str) -> Any:
    if name == "configuration":
        return " ".join(f"{chip.name}={csv_cell(chip.value)}" for chip in chips(job.spec))
    return run_fields()[name].value(job)


def csv_cell(value: Any) -> Any:
    """What a cell holds: numbers as they are, times in ISO 8601, flags in words, nothing for what is not known."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list):
        value = ", ".join(value)
    if isinstance(value, dict):
        return json.dumps(value)
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t"):
        return f"'{value}"  # a spreadsheet would take it for a formula
    return value


def _lines(rows: Sequence[Sequence[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return text.getvalue()
