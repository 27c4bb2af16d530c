"""The commands of docker-compose.yml, started as they stand there against a real PostgreSQL and a real Redis."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import redis
import yaml

from tests.system.pitwall import PROJECT_ROOT, TIME_SCALE, free_port, wait_until
from tests.system.postgres import PostgresServer
from webapp.embedded_redis import find_server

SERVICES = yaml.safe_load((PROJECT_ROOT / "docker-compose.yml").read_text())["services"]
MLP = {"model": "mlp", "dataset": "digits", "num_steps": 20, "micro_batch_size": 64, "device": "cpu"}


@contextmanager
def process(command: list[str], **options: object) -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen(command, **options)  # type: ignore[call-overload]
    try:
        yield child
    finally:
        child.terminate()
        child.wait(timeout=30)


@pytest.fixture(scope="module")
def postgres_url(postgres: PostgresServer) -> str:
    return postgres.create_database("deployment")


@pytest.fixture(scope="module")
def redis_url() -> Iterator[str]:
    port = free_port()
    written = SERVICES["redis"]["command"].replace("${REDIS_PASSWORD:?set it}", "secret")
    command = [find_server(), *shlex.split(written)[1:], "--port", str(port), "--bind", "127.0.0.1"]
    with process(command, stdout=subprocess.DEVNULL):
        url = f"redis://:secret@127.0.0.1:{port}/0"
        client = redis.Redis.from_url(url)
        wait_until(lambda: _answers(client), 30, "Redis")
        yield url


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


@pytest.fixture(scope="module")
def environment(postgres_url: str, redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables of docker-compose.yml with this machine's addresses in them."""
    written = set(SERVICES["web"]["environment"])
    values = {
        "PITWALL_ENV": SERVICES["web"]["environment"]["PITWALL_ENV"],
        "PITWALL_SECRET_KEY": "a-long-random-text-of-more-than-fifty-characters-0123456789",
        "PITWALL_ALLOWED_HOSTS": "127.0.0.1",
        "PITWALL_DATABASE_URL": postgres_url,
        "PITWALL_REDIS_URL": redis_url,
        "PITWALL_BEHIND_PROXY": SERVICES["web"]["environment"]["PITWALL_BEHIND_PROXY"],
    }
    assert set(values) == written
    values |= {"PITWALL_VAR": str(tmp_path_factory.mktemp("compose") / "var"), "PITWALL_TIME_SCALE": TIME_SCALE}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PITWALL_")}
    return inherited | values


def command_of(service: str, port: int = 0) -> list[str]:
    """A service's command with this interpreter and this machine's port in it."""
    text = SERVICES[service]["command"]
    text = re.sub(r"\$\{PITWALL_BIND:-[^}]*\}", "127.0.0.1", text)
    text = re.sub(r"\$\{PITWALL_PORT:-[^}]*\}", str(port), text)
    program, *arguments = shlex.split(text)
    assert program == "python"
    return [sys.executable, *arguments]


def test_the_compose_files_commands_run_a_job_on_postgresql_and_redis(environment: dict[str, str]) -> None:
    options = {"env": environment, "cwd": PROJECT_ROOT}
    setup = subprocess.run(command_of("setup"), **options, capture_output=True, text=True, check=True)  # type: ignore[call-overload]
    assert "admin" in setup.stdout
    token = [sys.executable, "manage.py", "create_token", "admin"]
    secret = subprocess.run(token, **options, capture_output=True, text=True, check=True).stdout.strip()  # type: ignore[call-overload]
    port = free_port()
    with process(command_of("web", port), **options), process(command_of("worker"), **options):
        headers = {"Authorization": f"Bearer {secret}", "X-Forwarded-Proto": "https"}
        client = httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers)
        wait_until(lambda: _is_well(client), 90, "a healthy deployment")
        job_id = client.post("/api/v1/jobs", json=MLP).raise_for_status().json()["id"]
        job = wait_until(lambda: _ended(client, job_id), 90, "the job's end")
        assert job["outcome"] == "succeeded"
        curve = client.get(f"/api/v1/jobs/{job_id}/curves/train_loss").raise_for_status().json()
        assert curve["x"] == list(range(1, 21))


def test_the_gpu_worker_is_the_same_command_with_devices_reserved() -> None:
    assert SERVICES["worker-gpu"]["command"] == SERVICES["worker"]["command"]
    (device,) = SERVICES["worker-gpu"]["deploy"]["resources"]["reservations"]["devices"]
    assert device["driver"] == "nvidia"


def test_production_settings_leave_check_deploy_nothing_to_say(environment: dict[str, str]) -> None:
    command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "DEBUG"]
    result = subprocess.run(command, env=environment, cwd=PROJECT_ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "no issues" in result.stdout


def test_production_without_its_settings_says_which_are_missing(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "PITWALL_ENV": "production", "PITWALL_VAR": str(tmp_path)}
    result = subprocess.run(
        [sys.executable, "manage.py", "check"], env=environment, cwd=PROJECT_ROOT, capture_output=True, text=True
    )
    assert result.returncode != 0
    assert "PITWALL_SECRET_KEY" in result.stderr
    assert "PITWALL_REDIS_URL" in result.stderr


def _is_well(client: httpx.Client) -> bool:
    try:
        return client.get("/healthz").status_code == 200
    except httpx.HTTPError:
        return False


def _ended(client: httpx.Client, job_id: int) -> dict[str, object] | None:
    job = client.get(f"/api/v1/jobs/{job_id}").raise_for_status().json()
    return job if job["outcome"] else None
