"""What can be asked for, and what the workers would say to it."""

from typing import Any

import ninja
from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field

from jobs.api.auth import asker
from jobs.api.choices import DEFAULT_QUEUE, choose_queue
from jobs.api.errors import ErrorsOut
from jobs.api.queries import Query
from jobs.api.serializers import FindingOut
from jobs.contract.catalog import Catalog
from jobs.contract.estimates import Estimate
from jobs.contract.rules import refusals
from jobs.contract.spec import TrainSpec
from jobs.models import Queue
from jobs.selectors.hosts import findings_for, known_catalog
from jobs.selectors.jobs import teams_of
from jobs.selectors.starts import estimate_start
from jobs.services.errors import SpecRefused
from jobs.services.estimates import want_estimate

router = Router(tags=["options"])


class OptionsOut(Schema):
    """All that a client needs to offer a form of its own."""

    spec_schema: dict[str, Any]
    catalog: Catalog
    queues: list[str]
    teams: list[str]


class CheckQuery(Query):
    """Whose workers are asked."""

    queue: str = Field(DEFAULT_QUEUE, description="The queue that the job would wait in.")


class CheckOut(Schema):
    """What the queue's workers say to a spec; it can be submitted where no finding's severity is `refuse`."""

    findings: list[FindingOut]
    starts_in_s: float | None  # estimated for a submission now; null where that cannot be told


@router.get("/options", response={200: OptionsOut, 401: ErrorsOut}, summary="See what can be asked for")
def get_options(request: HttpRequest) -> OptionsOut:
    """The spec's JSON schema, the models and data sets of the workers, the queues, and your teams."""
    return OptionsOut(
        spec_schema=TrainSpec.model_json_schema(),
        catalog=known_catalog(),
        queues=list(Queue.objects.values_list("name", flat=True)),
        teams=list(teams_of(asker(request)).values_list("name", flat=True)),
    )


class EstimateOut(Schema):
    """What a spec would need on the queue's hosts: ask again each second while both are null."""

    estimate: Estimate | None
    problem: str | None  # why it cannot be told


@router.post(
    "/estimates",
    response={200: EstimateOut, 202: EstimateOut, 400: ErrorsOut, 401: ErrorsOut, 422: ErrorsOut},
    summary="Estimate a job's memory and FLOPs",
)
def estimate_spec(request: HttpRequest, spec: TrainSpec, query: ninja.Query[CheckQuery]) -> Status[EstimateOut]:
    """Answered by a worker of the queue while it measures nothing, and kept; 202 until then. Nothing is queued."""
    queue = choose_queue(query.queue)
    refused = refusals(findings_for(spec, queue))
    if refused:
        raise SpecRefused(refused)
    wanted = want_estimate(spec, queue)
    answer = EstimateOut(estimate=wanted.told, problem=wanted.problem or None)
    return Status(200 if wanted.is_answered else 202, answer)


@router.post("/check", response={200: CheckOut, 400: ErrorsOut, 401: ErrorsOut, 422: ErrorsOut}, summary="Check a spec")
def check_spec(request: HttpRequest, spec: TrainSpec, query: ninja.Query[CheckQuery]) -> CheckOut:
    """What would be refused or warned about; nothing is queued."""
    queue = choose_queue(query.queue)
    return CheckOut(
        findings=[FindingOut.of(finding) for finding in findings_for(spec, queue)],
        starts_in_s=estimate_start(spec.model_dump(mode="json"), queue, asker(request).pk),
    )
