"""Tests of single rooms that a second database could answer otherwise, run again on PostgreSQL."""

import os
import subprocess
import sys

import pytest

from tests.system.pitwall import PROJECT_ROOT
from tests.system.postgres import PostgresServer


@pytest.mark.parametrize(
    ("paths", "rounds"),
    [
        (["tests/jobs/test_races.py"], 40),
        pytest.param(["tests/jobs", "tests/workers"], 200, marks=pytest.mark.slow),
    ],
    ids=["races", "all"],
)
def test_they_pass_there_too(postgres: PostgresServer, paths: list[str], rounds: int) -> None:
    url = postgres.create_database(f"rooms{rounds}")
    environment = os.environ | {"PITWALL_DATABASE_URL": url, "RACE_ROUNDS": str(rounds)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *paths]
    ran = subprocess.run(command, env=environment, cwd=PROJECT_ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-4000:]
    assert " passed" in ran.stdout
