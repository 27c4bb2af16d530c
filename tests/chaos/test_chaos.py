"""A short run of `make chaos` on either database."""

import os
import subprocess
import sys

import pytest

from tests.system.pitwall import PROJECT_ROOT


def chaos(*arguments: str, timeout_s: float = 400) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.chaos", *arguments]
    return subprocess.run(command, cwd=PROJECT_ROOT, env=os.environ, capture_output=True, text=True, timeout=timeout_s)


@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def test_every_job_of_a_short_seed_ends_once(database: str, request: pytest.FixtureRequest) -> None:
    if database == "postgresql":
        request.getfixturevalue("postgres_programs")
    ran = chaos("--seeds", "1", "--jobs", "8", "--fault-s", "6", "--database", database)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    last = ran.stdout.splitlines()[-1]
    assert last.startswith("1 seeds: 8 jobs, ")
    assert "8 ended once, 0 doubled, 0 lost, 0 leaked devices" in last
