"""What the web process must not carry along."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

PROGRAM = """
import json, sys
import webapp.asgi
from django.urls import get_resolver
get_resolver().url_patterns
json.dump(sorted(sys.modules), sys.stdout)
"""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    environment = os.environ | {"PITWALL_VAR": str(tmp_path_factory.mktemp("var"))}
    run = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return set(json.loads(run.stdout))


def test_all_addresses_are_loaded(loaded: set[str]) -> None:
    assert "jobs.api.jobs" in loaded


@pytest.mark.parametrize(
    "name", ["torch", "sklearn", "scipy", "optuna", "plotly.graph_objects", "workers", "workers.engine"]
)
def test_the_web_process_stays_small(loaded: set[str], name: str) -> None:
    assert name not in loaded
