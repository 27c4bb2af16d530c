"""The cast of the pages' tests: a member, another of the team, one of another team, one of the staff."""

import pytest
from django.test import Client

from jobs.models import Job, Queue, Team, User
from tests.jobs.factories import make_job, make_queue, make_team, make_user


@pytest.fixture
def queue(db: None) -> Queue:
    return make_queue()


@pytest.fixture
def team(db: None) -> Team:
    return make_team("Pit crew")


@pytest.fixture
def alice(team: Team, queue: Queue) -> User:
    return make_user("alice", team=team)


@pytest.fixture
def bob(team: Team) -> User:
    return make_user("bob", team=team)


@pytest.fixture
def stranger(db: None) -> User:
    return make_user("stranger", team=make_team("Rivals"))


@pytest.fixture
def boss(db: None) -> User:
    return make_user("boss", is_staff=True)


@pytest.fixture
def web(alice: User) -> Client:
    """Alice's browser."""
    return browser_of(alice)


@pytest.fixture
def job(alice: User, queue: Queue) -> Job:
    return make_job(alice, queue=queue)


def browser_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client
