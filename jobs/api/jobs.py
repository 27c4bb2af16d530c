"""Jobs: submit, list, look at."""

from typing import Annotated, Any

import ninja
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Router, Schema, Status
from pydantic import Field, create_model

from jobs.api.auth import asker
from jobs.api.choices import DEFAULT_QUEUE, choose_queue, choose_team
from jobs.api.errors import ErrorsOut
from jobs.api.pages import page_of_jobs
from jobs.api.queries import Query
from jobs.api.serializers import JobOut, JobRow
from jobs.contract.spec import TrainSpec
from jobs.contract.states import State
from jobs.models import Job
from jobs.selectors.jobs import visible_jobs
from jobs.services.submit import submit_job

router = Router(tags=["jobs"])


class SubmitQuery(Query):
    """Where a job goes and what it is called."""

    queue: str = Field(DEFAULT_QUEUE, description="The queue that it waits in.")
    name: str = Field("", max_length=200, description="A name for people.")
    team: str = Field("", description="One of your teams; your first one where it is left out.")


class ListQuery(Query):
    """Which jobs, in which order, how many."""

    state: State | None = Field(None, description="Only jobs in this state.")
    order_by: str = Field("-id", description="A column, with a minus sign for descending order.")
    limit: int = Field(50, ge=1, le=200, description="Jobs per page.")
    cursor: str = Field("", description="`next_cursor` of the page before.")


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


@router.post("/jobs", response={201: JobOut, 400: ErrorsOut, 401: ErrorsOut, 422: ErrorsOut}, summary="Submit a job")
def submit(request: HttpRequest, spec: TrainSpec, query: ninja.Query[SubmitQuery]) -> Status[JobOut]:
    """Queue a job. The body is the spec itself; nothing is queued where any field is refused."""
    user = asker(request)
    queue, team = choose_queue(query.queue), choose_team(user, query.team)
    job = submit_job(owner=user, team=team, queue=queue, spec=spec, name=query.name)
    return Status(201, JobOut.of(job))


@router.get("/jobs", response={200: JobsPage, 401: ErrorsOut, 422: ErrorsOut}, summary="List jobs")
def list_jobs(request: HttpRequest, query: ninja.Query[JobsQuery]) -> JobsPage:
    """The jobs of your teams. Any field of a spec filters by what was asked for."""
    asked: ListQuery = query
    jobs = visible_jobs(asker(request))
    if asked.state:
        jobs = jobs.filter(state=asked.state)
    values = asked.model_dump(mode="json", include=set(TrainSpec.model_fields), exclude_none=True)
    jobs = jobs.filter(**{f"spec__{name}": value for name, value in values.items()})
    page, next_cursor = page_of_jobs(jobs, asked.order_by, asked.limit, asked.cursor)
    return JobsPage(jobs=[JobRow.of(job) for job in page], next_cursor=next_cursor)


@router.get("/jobs/{int:job_id}", response={200: JobOut, 401: ErrorsOut, 404: ErrorsOut}, summary="Look at a job")
def get_job(request: HttpRequest, job_id: int) -> JobOut:
    """What was asked for, where it stands, what it measured."""
    return JobOut.of(visible_job(request, job_id))


def visible_job(request: HttpRequest, job_id: int) -> Job:
    """The job if the asker may see it, else 404."""
    return get_object_or_404(visible_jobs(asker(request)), pk=job_id)
