"""One running installation for the tests that share it."""

from collections.abc import Iterator

import pytest

from tests.system.pitwall import Pitwall, running


@pytest.fixture(scope="session")
def pitwall(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pitwall]:
    """A shared installation. A test that breaks it in a way that lasts starts one of its own."""
    with running(tmp_path_factory.mktemp("shared") / "var") as shared:
        yield shared
