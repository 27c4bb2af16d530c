"""How many threads a run computes with."""

import pytest
import torch

from tests.engine.engine_runs import DIGITS, train
from workers.engine.threads import default_num_threads


@pytest.mark.parametrize(
    ("num_cores", "num_local_ranks", "expected"), [(16, 1, 15), (16, 4, 3), (2, 1, 1), (2, 2, 1), (1, 1, 1)]
)
def test_all_cores_but_one_are_shared_out_over_the_ranks(
    monkeypatch: pytest.MonkeyPatch, num_cores: int, num_local_ranks: int, expected: int
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert default_num_threads(num_cores, num_local_ranks) == expected


def test_the_environment_has_its_say_where_the_spec_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert default_num_threads(16, 1) == 3


@pytest.mark.parametrize("num_threads", [1, 2, 3])
def test_a_run_computes_with_the_threads_that_its_spec_asks_for(num_threads: int) -> None:
    before = torch.get_num_threads()
    try:
        ran = train(**DIGITS, num_threads=num_threads)
        assert torch.get_num_threads() == num_threads
        assert ran.started.spec.num_threads == num_threads
    finally:
        torch.set_num_threads(before)
