import socket
import time

import pytest
from django.db import DatabaseError
from django.test import Client

from jobs.models import Queue
from tests.jobs.factories import make_worker
from tests.jobs.test_wake import redis_server

__all__ = ["redis_server"]

pytestmark = pytest.mark.django_db


def use_broker(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setattr("jobs.health.settings.REDIS_URL", url)


def test_a_live_process_says_so_without_asking_anybody(django_assert_num_queries: object) -> None:
    with django_assert_num_queries(0):  # type: ignore[operator]
        response = Client().get("/livez")
    assert response.status_code == 200
    assert "no-store" in response["Cache-Control"]


def test_all_is_well(monkeypatch: pytest.MonkeyPatch, redis_server: str) -> None:
    use_broker(monkeypatch, redis_server)
    make_worker()
    response = Client().get("/healthz")
    assert response.status_code == 200
    assert response.json() == {"web": "ok", "database": "ok", "broker": "ok", "worker": "ok"}


def test_no_worker_is_not_well(monkeypatch: pytest.MonkeyPatch, redis_server: str) -> None:
    use_broker(monkeypatch, redis_server)
    response = Client().get("/healthz")
    assert response.status_code == 503
    assert response.json()["worker"] == "No worker is online."
    assert response.json()["broker"] == "ok"


def test_a_broker_that_never_answers_is_soon_told(monkeypatch: pytest.MonkeyPatch) -> None:
    make_worker()
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(5)
        use_broker(monkeypatch, f"redis://127.0.0.1:{server.getsockname()[1]}/0")
        before = time.monotonic()
        response = Client().get("/healthz")
    assert time.monotonic() - before < 2.5
    assert response.status_code == 503
    assert response.json()["broker"] == "Redis does not answer."
    assert response.json()["worker"] == "ok"


def test_a_database_that_is_away_is_told_without_its_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_self: object) -> bool:
        raise DatabaseError("password authentication failed for user pitwall at 10.0.0.1")

    monkeypatch.setattr(type(Queue.objects.all()), "exists", fail)
    response = Client().get("/healthz")
    assert response.status_code == 503
    assert response.json()["database"] == "The database does not answer."
    assert "10.0.0.1" not in response.content.decode()


@pytest.mark.parametrize("address", ["/livez", "/healthz"])
def test_probes_need_no_sign_in_and_take_no_writes(address: str) -> None:
    assert Client().get(address).status_code in (200, 503)
    assert Client().post(address).status_code == 405
