"""One more field in `TrainSpec`, declared where the others are, appears wherever a spec is read, shown or stored.

The field is added in a fresh process, before anything but the contract is imported, exactly as if it stood in
`jobs/contract/spec.py`; everything else is the program as it is.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.prepared import copy_migrated

ROOT = Path(__file__).resolve().parent.parent.parent

PROGRAM = """
import argparse, io, json, os, sys

import jobs.contract.spec as contract
from pydantic import create_model
from jobs.contract.options import Group, Role, option

downforce = option(
    0.9, label="Downforce", help_text="How much of the last update is kept.",
    group=Group.OPTIMIZATION, role=Role.CONFIGURATION, ge=0, lt=1,
)
contract.TrainSpec = create_model("TrainSpec", __base__=contract.TrainSpec, downforce=(float, downforce))

import django
django.setup()

from django.core.management import call_command, load_command_class
from django.test import Client
from jobs.models import Job, Queue, Team, User
from jobs.services.tokens import create_token

admin = User.objects.create_superuser("admin", password="x")
Team.objects.create(name="Pit crew").members.add(admin)
Queue.objects.create(name="default")
client = Client(headers={"Authorization": f"Bearer {create_token(admin)[1]}", "Host": "localhost"})

def post(spec):
    return client.post("/api/v1/jobs", json.dumps(spec), content_type="application/json")

by_api = post({"num_steps": 5, "downforce": 0.5}).json()
call_command("submit", "--num-steps", "5", "--downforce", "0.25", stdout=io.StringIO())
by_command = Job.objects.latest("pk")
schema = client.get("/api/v1/openapi.json").json()
comparison = client.get(f"/api/v1/compare?jobs={by_api['id']},{by_command.pk}").json()
json.dump({
    "schema": schema["components"]["schemas"]["TrainSpec"]["properties"].get("downforce"),
    "filters": [parameter["name"] for parameter in schema["paths"]["/api/v1/jobs"]["get"]["parameters"]],
    "options": client.get("/api/v1/options").json()["spec_schema"]["properties"].get("downforce"),
    "flags": load_command_class("jobs", "submit").create_parser("manage.py", "submit").format_help(),
    "stored": [job.spec.get("downforce") for job in Job.objects.order_by("pk")],
    "diff": comparison["diff"],
    "filtered": [job["id"] for job in client.get("/api/v1/jobs?downforce=0.25").json()["jobs"]],
    "refused": post({"num_steps": 5, "downforce": 2}).json(),
    "ids": [by_api["id"], by_command.pk],
    "configuration": contract.fields_with_role(Role.CONFIGURATION),
}, sys.stdout)
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the program shows of the new field."""
    var = tmp_path_factory.mktemp("var")
    copy_migrated(var)
    environment = os.environ | {
        "PITWALL_VAR": str(var),
        "PITWALL_DATABASE_URL": "",  # SQLite in that folder, whatever the other tests run on
        "DJANGO_SETTINGS_MODULE": "webapp.settings",
        "PITWALL_LOG_LEVEL": "CRITICAL",
    }
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_the_apis_schema_has_it(seen: dict[str, Any]) -> None:
    for schema in (seen["schema"], seen["options"]):
        assert (schema["title"], schema["default"], schema["role"]) == ("Downforce", 0.9, "configuration")


def test_the_api_checks_it(seen: dict[str, Any]) -> None:
    [error] = seen["refused"]["errors"]
    assert (error["field"], error["message"]) == ("downforce", "Must be less than 1.0.")


def test_the_api_filters_by_it(seen: dict[str, Any]) -> None:
    assert "downforce" in seen["filters"]
    assert seen["filtered"] == seen["ids"][1:]


def test_the_command_line_has_a_flag_for_it(seen: dict[str, Any]) -> None:
    assert "--downforce" in seen["flags"]
    assert "How much of the last update is kept." in " ".join(seen["flags"].split())


def test_it_is_stored(seen: dict[str, Any]) -> None:
    assert seen["stored"] == [0.5, 0.25]


def test_a_comparison_shows_where_jobs_differ_in_it(seen: dict[str, Any]) -> None:
    assert seen["diff"] == [{"field": "downforce", "label": "Downforce", "unit": "", "values": [0.5, 0.25]}]


def test_it_is_a_column_of_the_leaderboard(seen: dict[str, Any]) -> None:
    assert "downforce" in seen["configuration"]
