"""A node is called until it has joined, and joins once."""

import pytest

from jobs.contract.states import Outcome
from jobs.models import Attempt, Worker
from jobs.services import nodes
from jobs.services.claim import claim_next
from jobs.services.finish import finish_attempt, lose_attempt
from tests.jobs.factories import make_job, make_spec, make_worker
from workers import host as host_module
from workers.cleaning import Cleaner
from workers.host import Host

pytestmark = pytest.mark.django_db


@pytest.fixture
def first() -> Worker:
    return make_worker("first")


@pytest.fixture
def second() -> Worker:
    return make_worker("second")


@pytest.fixture
def attempt(first: Worker, second: Worker) -> Attempt:
    make_job(spec=make_spec(device="cpu", num_nodes=2, parallelism="ddp"))
    attempt = claim_next(first.pk)
    assert attempt is not None
    return attempt


def test_a_call_that_was_lost_is_made_again_until_the_host_has_joined(
    attempt: Attempt, second: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[object] = []
    monkeypatch.setattr(nodes, "ask_to_join", lambda *told: calls.append(told))
    host = Host()
    host.worker_id = second.pk
    host._relay()
    assert calls == [], "node 0 does not know yet where to meet"
    nodes.open_rendezvous(attempt, "10.0.0.1:4000")
    (node,) = nodes.called_nodes(second.pk)
    host._relay(), host._relay()
    assert calls == [(second.host_id, node.pk)] * 2
    assert nodes.join(node, "tag")
    assert not nodes.join(node, "tag"), "a call that comes twice is one node"
    host._relay()
    assert len(calls) == 2


def test_a_host_that_is_called_too_late_starts_nothing(
    attempt: Attempt, second: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes.open_rendezvous(attempt, "10.0.0.1:4000")
    (node,) = nodes.called_nodes(second.pk)
    lose_attempt(attempt, "gone", release_devices=True)
    started: list[object] = []
    monkeypatch.setattr(host_module.subprocess, "Popen", lambda *told, **_: started.append(told))
    host = Host()
    host.worker_id = second.pk
    assert host.join(node.pk) is None
    assert not nodes.join(node, "tag")
    assert started == []


def test_the_devices_of_all_nodes_are_freed_together_once_all_have_ended(attempt: Attempt) -> None:
    nodes.open_rendezvous(attempt, "10.0.0.1:4000")
    nodes.request_stop(attempt)  # the second has not joined: it never will
    assert not nodes.still_there(attempt, without_silent=False)
    assert attempt.devices.count() == 2
    finish_attempt(attempt, Outcome.SUCCEEDED)
    assert attempt.devices.count() == 0


def test_each_host_cleans_up_for_itself_where_node_0_has_gone(attempt: Attempt, first: Worker, second: Worker) -> None:
    lose_attempt(attempt, "gone", release_devices=False)
    Cleaner().clean(second.pk)
    assert [device.worker for device in attempt.devices.all()] == [first]
    Cleaner().clean(first.pk)
    assert attempt.devices.count() == 0


def test_a_node_that_left_something_behind_has_its_own_devices_quarantined(attempt: Attempt, second: Worker) -> None:
    (node,) = attempt.nodes.all()
    nodes.end_node(node, Outcome.FAILED, left_behind="python (12)")
    finish_attempt(attempt, Outcome.FAILED)
    assert [device.quarantine_reason for device in second.devices.all()] == ["python (12)"]
    assert attempt.devices.count() == 0
