"""The cast that most tests of jobs need."""

import pytest
from django.test import Client

from jobs.models import Job, Queue, Team, User
from jobs.services.tokens import create_token
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
def stranger(db: None) -> User:
    """Somebody of another team."""
    return make_user("stranger", team=make_team("Rivals"))


@pytest.fixture
def strangers_job(stranger: User, queue: Queue) -> Job:
    return make_job(stranger)


@pytest.fixture
def api(alice: User) -> Client:
    """A client that sends alice's token."""
    return client_of(alice)


def client_of(user: User) -> Client:
    return Client(headers={"Authorization": f"Bearer {create_token(user)[1]}"}, enforce_csrf_checks=True)
