"""Shared by the engine's tests; the helpers themselves are in `engine_runs.py`."""

import pytest
from engine_runs import Run, train


@pytest.fixture(scope="session")
def baseline() -> Run:
    """The default digits job."""
    return train()
