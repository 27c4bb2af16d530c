"""While the database is away: pages say so in words, the API in its own shape, and live pages catch up afterwards."""

import asyncio

import pytest
from django.db import InterfaceError, OperationalError
from django.test import Client

from jobs import live
from jobs.live import Hub, Reading, Topics
from jobs.models import User
from jobs.services.tokens import create_token
from tests.web.conftest import browser_of


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (OperationalError("gone"), 503, "The database is away"),
        (InterfaceError("gone"), 503, "The database is away"),
        (ValueError("ours"), 500, "Something broke here"),
    ],
)
def test_a_page_says_what_is_away(
    alice: User, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, words: str
) -> None:
    def fail(_user: User) -> None:
        raise error

    monkeypatch.setattr("jobs.views.compare.visible_jobs", fail)
    browser = browser_of(alice)
    browser.raise_request_exception = False
    answer = browser.get("/compare/?jobs=1")
    assert answer.status_code == status
    assert words in answer.content.decode()
    assert ("Retry-After" in answer.headers) == (status == 503)


def test_the_api_says_it_in_its_own_shape(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_user: User) -> None:
        raise OperationalError("gone")

    monkeypatch.setattr("jobs.api.saved_views.visible_views", fail)
    api = Client(headers={"Authorization": f"Bearer {create_token(alice)[1]}"}, raise_request_exception=False)
    answer = api.get("/api/v1/views")
    assert answer.status_code == 503
    assert answer.json()["errors"][0]["code"] == "database_away"


class Away:
    """A reader whose database is away for the first few readings."""

    def __init__(self, num_failures: int) -> None:
        self._failures_left = num_failures

    def read(self, _watched: Topics) -> Reading:
        if self._failures_left:
            self._failures_left -= 1
            raise OperationalError("gone")
        return Reading()


def test_a_live_page_is_told_and_greeted_again_so_that_it_fetches_what_it_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live, "AFTER_FAILURE_S", 0.0)

    async def told() -> list[bytes | None]:
        hub = Hub(Away(num_failures=1))  # type: ignore[arg-type]
        viewer = hub.join(Topics())
        messages = [await asyncio.wait_for(viewer.messages.get(), 30) for _ in range(2)]
        hub.close()
        return messages

    assert [message.decode().split("\n")[0] for message in asyncio.run(told()) if message] == [
        "event: away",
        "event: hello",
    ]
