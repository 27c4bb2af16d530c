from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from jobs.contract.facts import Ceilings, Datasheet
from jobs.models import Queue, Worker
from jobs.selectors.fleet import queue_states, worker_states
from jobs.services.queues import pause_queue
from jobs.services.workers import say_goodbye
from jobs.templatetags.pitwall import per_second
from tests.jobs.factories import make_job, make_queue, make_user, make_worker, start

pytestmark = pytest.mark.django_db


def test_a_queue_counts_what_waits_and_what_runs(queue: Queue) -> None:
    start(make_job(queue=queue))
    make_job(queue=queue, queued_at=timezone.now() - timedelta(minutes=10))
    make_job(queue=queue)
    make_job(queue=queue, state="failed", outcome="failed")
    make_queue("empty")
    states = {state.queue.name: state for state in queue_states()}
    assert (states["default"].depth, states["default"].running) == (2, 1)
    assert states["default"].oldest_wait_s == pytest.approx(600, abs=5)
    assert (states["empty"].depth, states["empty"].running, states["empty"].oldest_wait_s) == (0, 0, None)


def test_a_paused_queue_says_by_whom_and_why(queue: Queue) -> None:
    pause_queue(queue, make_user("erin"), "new driver")
    [state] = queue_states()
    assert (state.is_paused, state.paused_by, state.pause_reason) == (True, "erin", "new driver")


def test_only_online_workers_are_named(queue: Queue) -> None:
    make_worker("here")
    say_goodbye(make_worker("gone").pk)
    Worker.objects.filter(pk=make_worker("silent").pk).update(heartbeat_at=timezone.now() - timedelta(hours=1))
    [state] = queue_states()
    assert state.worker_names == ["here"]


def test_a_worker_shows_its_leases_and_quarantines() -> None:
    worker = make_worker(num_gpus=2)
    job = make_job()
    attempt = start(job, worker)
    worker.devices.filter(kind="cuda", index=1).update(quarantine_reason="a process was left")
    [state] = worker_states()
    assert (state.is_online, state.is_draining, state.version) == (True, False, "0.1.0")
    assert 0 <= state.heartbeat_age_s < 5
    leased = attempt.devices.get()
    assert {device.device.pk: device.job_id for device in state.devices}[leased.pk] == job.pk
    assert [device.quarantine_reason for device in state.devices] == ["", "", "a process was left"]


def test_an_offline_worker_is_still_listed() -> None:
    say_goodbye(make_worker().pk)
    [state] = worker_states()
    assert not state.is_online


def test_queries_do_not_grow_with_the_fleet(django_assert_num_queries: object) -> None:
    for number in range(4):
        start(
            make_job(queue=make_queue(f"q{number}")), make_worker(f"host-{number}", queues=[f"q{number}"], num_gpus=2)
        )
    with django_assert_num_queries(2):  # type: ignore[operator]
        queue_states()
    with django_assert_num_queries(4):  # type: ignore[operator]
        worker_states()


def test_what_devices_reach_stands_beside_their_datasheets(api: Client) -> None:
    worker = make_worker(num_gpus=1)
    reached = Ceilings(matmul_flops_per_s={"fp32": 52e12, "bf16": 750e12}, copy_bytes_per_s=4.1e12)
    sheet = Datasheet(matmul_flops_per_s={"fp32": 67e12, "bf16": 989e12}, bytes_per_s=4.8e12)
    facts = worker.host_facts
    gpu = facts.devices[1].model_copy(update={"ceilings": reached, "datasheet": sheet})
    Worker.objects.filter(pk=worker.pk).update(
        facts=facts.model_copy(update={"devices": [facts.devices[0], gpu]}).model_dump(mode="json")
    )
    [state] = worker_states()
    assert state.devices[0].rates == []
    assert [per_second(rate) for rate in state.devices[1].rates] == [
        'fp32 52 of 67 <span class="unit">TFLOP/s</span>',
        'bf16 750 of 989 <span class="unit">TFLOP/s</span>',
        'copy 4,100 of 4,800 <span class="unit">GB/s</span>',
    ]
    cpu, shown = api.get("/api/v1/workers").json()["workers"][0]["devices"]
    assert (cpu["ceilings"], cpu["datasheet"]) == (None, None)
    assert shown["ceilings"]["matmul_flops_per_s"]["bf16"] == 750e12
    assert shown["datasheet"]["bytes_per_s"] == 4.8e12
