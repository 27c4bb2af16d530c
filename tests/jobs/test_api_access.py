"""Who may use the API, with what, and what they see: each endpoint in turn."""

import json
import re
from functools import cache
from typing import Any

import pytest
from django.test import Client

from jobs.api import api as pitwall_api
from jobs.contract.plan import StudyPlan
from jobs.contract.states import Outcome
from jobs.models import Board, BoardEntry, Job, SavedView, Search, Study, Team, User
from jobs.reproduction import LEAST_SEEDS
from jobs.services.ablation import ablate_job
from jobs.services.saved_views import save_view
from jobs.services.searches import create_search, possible_axes
from jobs.services.studies import create_study
from jobs.services.tokens import create_token, revoke_token
from tests.jobs.conftest import client_of
from tests.jobs.factories import make_ended_job, make_job, make_queue, make_spec, make_user, make_worker

SPEC = json.dumps({"num_steps": 5})
PLAN = {"base": {"num_steps": 5}, "axes": [{"field": "num_threads", "values": [1]}], "num_repeats": 1}

LONG = {"num_steps": 1000, "micro_batch_size": 16}
AXES = ["precision", "compile", "optimizer", "batch"]
SEARCH = {"base": LONG, "axes": AXES, "num_repeats": 3}


# What has to stand in a body, by the end of the path; a POST that is not here takes an empty one.
BODIES = {
    "/jobs": SPEC,
    "/estimates": SPEC,
    "/studies": json.dumps(PLAN),
    "/extend/estimate": '{"num_repeats": 2}',
    "/estimate": json.dumps(PLAN),
    "/searches": json.dumps(SEARCH),
    "/views": '{"name": "Mine"}',
    "/pause": '{"reason": "maintenance"}',
    "/quarantine": '{"reason": "maintenance"}',
    "/bulk": '{"act": "cancel", "jobs": [1]}',
}


@cache  # making it takes a tenth of a second
def schema_paths() -> dict[str, Any]:
    return pitwall_api.get_openapi_schema(path_prefix="/api/v1/")["paths"]


def operations() -> list[tuple[str, str]]:
    """Every operation of the schema, so that a new one is tested by being there."""
    return [(method, path) for path, methods in schema_paths().items() for method in methods]


def is_for_staff(method: str, path: str) -> bool:
    """Whether the documentation says that it is for staff."""
    return "For staff." in schema_paths()[path][method]["description"]


def target_of(path: str, owner: User) -> Job | SavedView | Study | Board | BoardEntry | Search:
    """What the operation is about: a job that is in the state for it, a view, a study, a board or its entry."""
    if "{board_id}" in path:
        make_ended_job(owner)
        return Board.objects.get()
    if "{entry_id}" in path:
        for seed in range(LEAST_SEEDS if path.endswith("/reproduce") else 2):
            make_ended_job(owner, spec=make_spec(seed=seed))
        return BoardEntry.objects.get()
    make_worker()
    if "{search_id}" in path:
        return make_search(owner)
    if path.endswith("/studies/{study_id}/ablation"):
        options = {"precision": "bf16-mixed", "optimizer_impl": "fused"}
        return ablate_job(make_ended_job(owner, spec=make_spec(**options)), owner)
    if path.endswith("/fit"):
        return make_ended_job(owner, outcome=Outcome.OUT_OF_MEMORY)
    if "{study_id}" in path:
        asked = {"owner": owner, "team": owner.teams.get(), "queue": make_queue()}
        return create_study(plan=StudyPlan.model_validate(PLAN), **asked)
    if "{view_id}" in path:
        return save_view(owner, owner.teams.get(), "Mine", "")
    return make_ended_job(owner) if path.endswith("/requeue") else make_job(owner)


def make_search(owner: User) -> Search:
    queue, spec = make_queue(), make_spec(**LONG)
    axes = {name: values for name, values in possible_axes(spec, queue).items() if name in AXES}
    return create_search(owner=owner, team=owner.teams.get(), queue=queue, spec=spec, axes=axes, num_repeats=3)


def call(client: Client, method: str, path: str, target_id: int = 1) -> Any:
    places = {
        "{job_id}": str(target_id),
        "{view_id}": str(target_id),
        "{study_id}": str(target_id),
        "{board_id}": str(target_id),
        "{entry_id}": str(target_id),
        "{series}": "train_loss",
        "{name}": "default",
        "{search_id}": str(target_id),
        "{key}": "amp",
        "{device}": "cpu",
        "{worker_id}": "1",
        "{device_id}": "1",
    }
    address = path
    for place, value in places.items():
        address = address.replace(place, value)
    if address.endswith("/compare"):
        address += f"?jobs={target_id}"
    data = next((body for end, body in BODIES.items() if path.endswith(end)), "{}")
    body = {"content_type": "application/json", "data": data} if method != "get" else {}
    return getattr(client, method)(address, **body)


OPERATIONS = operations()
OF_ONE_JOB = [(method, path) for method, path in OPERATIONS if "{job_id}" in path or path.endswith("/compare")]


def test_the_endpoints_are_those_of_the_contract() -> None:
    assert {(method, re.sub(r"^/api/v1", "", path)) for method, path in OPERATIONS} >= {
        ("post", "/jobs"),
        ("get", "/jobs"),
        ("get", "/jobs/{job_id}"),
        ("post", "/jobs/{job_id}/cancel"),
        ("get", "/jobs/{job_id}/curves/{series}"),
        ("get", "/compare"),
        ("get", "/leaderboard"),
        ("get", "/queues"),
        ("get", "/workers"),
    }


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_nobody_gets_in_unknown(method: str, path: str, db: None) -> None:
    response = call(Client(enforce_csrf_checks=True), method, path)
    assert response.status_code == 401
    assert response["WWW-Authenticate"] == "Bearer"
    assert response.json()["errors"][0]["code"] == "not_signed_in"


@pytest.mark.parametrize("header", ["Bearer nonsense", "Bearer ", "Bearer", "Basic YTpi", "nonsense"])
def test_a_wrong_token_does_not_get_in(header: str, db: None) -> None:
    assert Client(headers={"Authorization": header}).get("/api/v1/jobs").status_code == 401


def test_a_wrong_token_is_not_made_up_for_by_a_session(alice: User) -> None:
    client = Client()
    client.force_login(alice)
    assert client.get("/api/v1/jobs", headers={"Authorization": "Bearer nonsense"}).status_code == 401


def test_a_revoked_token_does_not_get_in(alice: User) -> None:
    token, secret = create_token(alice)
    revoke_token(token)
    assert Client(headers={"Authorization": f"Bearer {secret}"}).get("/api/v1/jobs").status_code == 401


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_a_token_gets_in_everywhere(method: str, path: str, api: Client, alice: User) -> None:
    response = call(api, method, path, target_of(path, alice).pk)
    if is_for_staff(method, path):
        assert (response.status_code, response.json()["errors"][0]["code"]) == (403, "not_allowed")
    else:
        assert response.status_code in (200, 201, 202, 204)


def test_what_changes_the_fleet_is_for_staff() -> None:
    changing = {
        (method, path)
        for method, path in OPERATIONS
        if method != "get" and not re.search("job_id|view|study_id|entry_id|search_id", path)
    }
    assert {path for method, path in changing if not is_for_staff(method, path)} == {
        "/api/v1/jobs",
        "/api/v1/jobs/bulk",
        "/api/v1/check",
        "/api/v1/estimates",
        "/api/v1/studies",
        "/api/v1/studies/estimate",
        "/api/v1/searches",
        "/api/v1/claims/{key}/{device}",
    }


def test_a_session_reads_and_with_its_csrf_token_writes(alice: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    assert client.get("/api/v1/jobs").status_code == 200
    assert client.post("/api/v1/jobs", SPEC, content_type="application/json").status_code == 403
    assert not Job.objects.exists()
    token = client.get("/api/v1/docs").content.decode().split('data-csrf-token="')[1].split('"')[0]
    response = client.post("/api/v1/jobs", SPEC, content_type="application/json", headers={"X-CSRFToken": token})
    assert response.status_code == 201


@pytest.mark.parametrize(("method", "path"), OF_ONE_JOB)
def test_a_job_of_another_team_is_not_there(method: str, path: str, api: Client, strangers_job: Job) -> None:
    response = call(api, method, path, strangers_job.pk)
    missing = call(api, method, path, strangers_job.pk + 1000)
    assert response.status_code == missing.status_code == 404
    assert response.content == missing.content, "whether it exists is not told either"
    strangers_job.refresh_from_db()
    assert strangers_job.state == "queued"


@pytest.mark.parametrize(("method", "path"), OF_ONE_JOB)
def test_staff_reach_every_job(method: str, path: str, stranger: User) -> None:
    job = target_of(path, stranger)
    assert call(client_of(make_user(is_staff=True)), method, path, job.pk).status_code in (200, 201)


# What a team-mate, who sees the job, may not do to it; new jobs that begin with it are their own.
FOR_TEAM = ("/clone", "/fit", "/ablation")
FOR_OWNERS = [(method, path) for method, path in OF_ONE_JOB if method != "get" and not path.endswith(FOR_TEAM)]


@pytest.mark.parametrize(("method", "path"), FOR_OWNERS)
def test_a_team_mate_changes_nothing(method: str, path: str, api: Client, team: Team) -> None:
    job = target_of(path, make_user("bob", team=team))
    body = {"content_type": "application/json", "data": '{"priority": -1}' if method == "patch" else "{}"}
    response = getattr(api, method)(path.replace("{job_id}", str(job.pk)), **body)
    assert (response.status_code, response.json()["errors"][0]["code"]) == (403, "not_allowed")
    state = job.state
    job.refresh_from_db()
    assert (job.state, job.priority) == (state, 0)


def test_one_foreign_job_spoils_a_comparison(api: Client, alice: User, strangers_job: Job) -> None:
    mine = make_job(alice)
    assert api.get(f"/api/v1/compare?jobs={mine.pk},{strangers_job.pk}").status_code == 404


def test_other_teams_runs_are_on_no_board_of_mine(api: Client, stranger: User) -> None:
    make_ended_job(stranger)
    assert api.get("/api/v1/leaderboard").json() == {"boards": []}


@pytest.mark.parametrize("number", ["0", "-1", "x", "1.5", str(10**30)])
def test_a_number_that_is_none_is_not_there(api: Client, number: str) -> None:
    assert api.get(f"/api/v1/jobs/{number}").status_code == 404
