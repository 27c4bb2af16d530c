"""What all tests share: state and a database file of their own, and static files that need no collecting."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connections

from tests.second_try import pytest_collection_modifyitems, pytest_sessionfinish, pytest_terminal_summary  # noqa: F401
from tests.system.postgres import NOT_THERE, PostgresServer, find_programs

# pytest-django has loaded the settings by now, and nothing has used them yet.
settings.VAR = Path(tempfile.mkdtemp(prefix="pitwall-tests-"))
settings.ENVIRONMENT = settings.ENVIRONMENT.model_copy(update={"spares": 0})
settings.STORAGES = settings.STORAGES | {
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
}
settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if "whitenoise" not in name]
settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # fast, for accounts that last a test


@pytest.fixture(scope="session")
def django_db_modify_db_settings() -> None:
    """A real SQLite file in WAL mode instead of Django's in-memory one, so that threads meet real locks."""
    database = connections.databases["default"]
    if database["ENGINE"].endswith("sqlite3"):
        database["TEST"]["NAME"] = settings.VAR / "test.sqlite3"


@pytest.fixture(scope="session")
def postgres_programs() -> Path:
    """The folder of initdb and postgres; without them the tests skip, or fail where everything is required."""
    programs = find_programs()
    if programs is None and os.environ.get("PITWALL_TEST_REQUIRE"):
        pytest.fail(NOT_THERE)
    if programs is None:
        pytest.skip(NOT_THERE)
    return programs


@pytest.fixture(scope="session")
def postgres(postgres_programs: Path) -> Iterator[PostgresServer]:
    """A shared server; each who uses it makes a database of its own. A test that ends it starts it again."""
    server = PostgresServer(postgres_programs)
    try:
        server.start()
        yield server
    finally:
        server.remove()
