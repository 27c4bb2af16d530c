"""What is told as exposed communication, held against waits of known length between two real ranks."""

import json

import pytest
from exposed_on_two_ranks import DELAY_S, NUM_COLLECTIVES
from two_ranks import start_two_ranks

DELAY_MS = 1e3 * DELAY_S


@pytest.fixture(scope="module")
def exposed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exposed")
    start_two_ranks(folder, "exposed_on_two_ranks.py")
    return json.loads((folder / "exposed.json").read_text())


def test_what_fsdp2_waits_for_is_told_as_a_clock_around_its_collectives_counts_it(exposed):
    found = exposed["slow_network"]
    assert found["clock_ms"] >= NUM_COLLECTIVES * DELAY_MS / 10
    assert found["told_ms"] == pytest.approx(found["clock_ms"], rel=0.2)


@pytest.mark.parametrize("parallelism", ["ddp", "fsdp2"])
def test_waiting_for_a_slow_rank_counts_once(exposed, parallelism):
    assert exposed[f"slow_rank_{parallelism}"]["told_ms"] == pytest.approx(DELAY_MS, rel=0.4)


def test_weights_that_come_while_a_block_computes_are_not_told(exposed):
    assert exposed["not_hidden"]["told_ms"] >= 0.8 * DELAY_MS
    assert exposed["hidden"]["told_ms"] < 0.4 * DELAY_MS
