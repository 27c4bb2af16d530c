"""Jobs: submit, list, look at."""

from datetime import datetime
from typing import Annotated, Any

import ninja
from django.http import HttpRequest, QueryDict
from django.shortcuts import get_object_or_404
from ninja import Router, Schema, Status
from pydantic import Field, create_model

from jobs.api.auth import asker
from jobs.api.choices import DEFAULT_QUEUE, choose_queue, choose_team
from jobs.api.errors import ErrorsOut, refusal
from jobs.api.queries import Query
from jobs.api.run_query import order_of, page_of, query_of
from jobs.api.serializers import JobOut, JobRow
from jobs.contract.spec import TrainSpec
from jobs.contract.states import Outcome, State
from jobs.forms import RunListAddress
from jobs.models import Job, ViewPage
from jobs.selectors.jobs import visible_jobs
from jobs.selectors.run_pages import in_order
from jobs.selectors.run_query import MOST_CHARACTERS, RunQuery
from jobs.selectors.saved_views import visible_views
from jobs.services.errors import NotPossible
from jobs.services.submit import submit_job
from jobs.services.tags import clean_tags, split_tags

router = Router(tags=["jobs"])


class SubmitQuery(Query):
    """Where a job goes and what it is called."""

    queue: str = Field(DEFAULT_QUEUE, description="The queue that it waits in.")
    name: str = Field("", max_length=200, description="A name for people.")
    tags: str = Field("", max_length=1000, description="Labels to find it by, separated by commas.")
    team: str = Field("", description="One of your teams; your first one where it is left out.")


class ListQuery(Query):
    """Which jobs, in which order, how many."""

    q: str = Field("", max_length=MOST_CHARACTERS, description="A text query, such as `model:mlp step_time_ms<5`.")
    view: int | None = Field(None, ge=1, le=2**63 - 1, description="A saved view: its query, and its order.")
    state: State | None = Field(None, description="Only jobs in this state.")
    outcome: Outcome | None = Field(None, description="Only jobs that ended so.")
    owner: str = Field("", max_length=150, description="Only this person's; `me` for your own.")
    team: str = Field("", max_length=100, description="Only this team's.")
    queue: str = Field("", max_length=50, description="Only of this queue.")
    tag: str = Field("", max_length=50, description="Only with this tag.")
    device_name: str = Field("", max_length=200, description="Only what ran on this device.")
    origin: str = Field("", max_length=10, description="`submitted` or `imported`.")
    created_after: datetime | None = Field(None, description="Submitted at this time or later.")
    created_before: datetime | None = Field(None, description="Submitted before this time.")
    order_by: str = Field("", description="Any field, with a minus sign for descending order; `-id` if left out.")
    limit: int = Field(50, ge=1, le=200, description="Jobs per page.")
    cursor: str = Field("", max_length=2000, description="`next_cursor` of the page before.")


# Every field of a spec is a filter by its own name, with its own type.
_SPEC_FILTERS: dict[str, Any] = {
    name: (Annotated[field.annotation, Field(title=field.title, description=field.description)] | None, None)
    for name, field in TrainSpec.model_fields.items()
}
JobsQuery: type[ListQuery] = create_model("JobsQuery", __base__=ListQuery, **_SPEC_FILTERS)


class JobsPage(Schema):
    """One page of jobs; `next_cursor` is null on the last one."""

    jobs: list[JobRow]
    next_cursor: str | None
    count: int  # of all that match; 10001 means more than 10000


@router.post("/jobs", response={201: JobOut, 400: ErrorsOut, 401: ErrorsOut, 422: ErrorsOut}, summary="Submit a job")
def submit(request: HttpRequest, spec: TrainSpec, query: ninja.Query[SubmitQuery]) -> Status[JobOut]:
    """Queue a job. The body is the spec itself; nothing is queued where any field is refused."""
    user = asker(request)
    queue, team = choose_queue(query.queue), choose_team(user, query.team)
    job = submit_job(owner=user, team=team, queue=queue, spec=spec, name=query.name, tags=read_tags(query.tags))
    return Status(201, JobOut.of(job))


@router.get("/jobs", response={200: JobsPage, 401: ErrorsOut, 404: ErrorsOut, 422: ErrorsOut}, summary="List jobs")
def list_jobs(request: HttpRequest, query: ninja.Query[JobsQuery]) -> JobsPage:
    """The jobs of your teams. Any field of a spec filters by what was asked for, any field and figure by `q`."""
    asked, user = query, asker(request)
    wanted, order_by = query_of(asked), asked.order_by
    if asked.view is not None:
        view = RunListAddress.from_query(
            QueryDict(get_object_or_404(visible_views(user), pk=asked.view, page=ViewPage.LIST).query)
        )
        wanted = RunQuery((*view.query.terms, *wanted.terms), view.query.problems)
        order_by = order_by or str(view.order)
    ids, next_cursor, count = page_of(wanted, order_of(order_by or "-id"), user, asked.limit, asked.cursor)
    jobs = in_order(visible_jobs(user).prefetch_related("tags"), ids)
    return JobsPage(jobs=[JobRow.of(job) for job in jobs], next_cursor=next_cursor, count=count)


@router.get("/jobs/{int:job_id}", response={200: JobOut, 401: ErrorsOut, 404: ErrorsOut}, summary="Look at a job")
def get_job(request: HttpRequest, job_id: int) -> JobOut:
    """What was asked for, where it stands, what it measured."""
    return JobOut.of(visible_job(request, job_id))


def read_tags(text: str) -> list[str]:
    """Tags separated by commas; refused at their field where one cannot be a tag."""
    try:
        return clean_tags(split_tags(text))
    except NotPossible as error:
        raise refusal("tags", "bad_tag", str(error)) from error


def visible_job(request: HttpRequest, job_id: int) -> Job:
    """The job if the asker may see it, else 404."""
    return get_object_or_404(visible_jobs(asker(request)), pk=job_id)
