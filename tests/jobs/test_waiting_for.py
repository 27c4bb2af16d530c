"""What a queued job waits for, in words."""

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.models import Queue, Worker
from jobs.selectors.waiting import waiting_for
from jobs.services.queues import pause_queue
from tests.jobs.factories import make_ended_job, make_job, make_spec, make_user, make_worker, points, record, start

pytestmark = pytest.mark.django_db


def test_without_a_worker() -> None:
    assert waiting_for(make_job()) == "No worker that serves the queue “default” is online."


def test_with_a_worker_of_another_queue_only() -> None:
    make_worker(queues=["gpu"])
    assert "No worker" in waiting_for(make_job())


def test_in_a_paused_queue(queue: Queue) -> None:
    make_worker()
    pause_queue(queue, make_user("erin"), "new driver")
    assert waiting_for(make_job(queue=queue)) == "The queue “default” was paused by erin: new driver"


def test_in_a_queue_that_was_paused_without_a_reason(queue: Queue) -> None:
    pause_queue(queue, make_user("erin"), "")
    assert waiting_for(make_job(queue=queue)) == "The queue “default” is paused."


def test_while_all_workers_drain() -> None:
    make_worker()
    Worker.objects.update(is_draining=True)
    assert "draining" in waiting_for(make_job())


def test_while_its_queue_runs_as_many_jobs_as_it_may(queue: Queue) -> None:
    queue.max_running = 1
    queue.save()
    start(make_job(queue=queue), make_worker("a"))
    make_worker("b")
    assert waiting_for(make_job(queue=queue)) == "The queue “default” runs at most 1 job at once."


def test_while_its_owner_has_as_many_jobs_running_as_one_may(queue: Queue) -> None:
    queue.max_running_per_user = 2
    queue.save()
    first = make_job(queue=queue)
    start(first, make_worker("a"))
    start(make_job(first.owner, queue=queue), make_worker("b"))
    make_worker("c")
    sentence = "The queue “default” runs at most 2 jobs of each user at once."
    assert waiting_for(make_job(first.owner, queue=queue)) == sentence
    assert waiting_for(make_job(queue=queue)) != sentence


def test_for_hardware_that_no_worker_has() -> None:
    make_worker()
    sentence = waiting_for(make_job(spec=make_spec(device="cuda")))
    assert sentence.startswith("No online worker of the queue “default” can run it: ")


def test_for_the_job_on_the_only_device() -> None:
    worker = make_worker()
    running = make_job()
    start(running, worker)
    sentence = f"It is next in line and needs the CPU of box: job {running.pk} runs."
    assert waiting_for(make_job()) == sentence


def test_for_the_job_that_ends_first() -> None:
    slow, quick = make_job(spec=make_spec(num_steps=1000)), make_job(spec=make_spec(num_steps=1000))
    a, b = start(slow, make_worker("a")), start(quick, make_worker("b"))
    record(a, points([1, 101], train_loss=[3.0, 2.0]))  # 10 ms a step, 899 left
    record(b, points([1, 901], train_loss=[3.0, 2.0]))
    assert waiting_for(make_job()).endswith(f"of b: job {quick.pk} ends in about a minute.")


def test_for_gpus_that_are_held_by_others() -> None:
    worker = make_worker("apex", num_gpus=2)
    first = make_job(spec=make_spec(device="cuda", num_steps=36_101))
    record(start(first, worker), points([1, 101], train_loss=[3.0, 2.0]))  # 10 ms a step: 360 s left
    both = make_job(spec=make_spec(device="cuda", num_devices=2, parallelism="ddp"))
    assert waiting_for(both) == (
        f"It is next in line and needs 2 GPUs with 80 GB of apex: 1 free, job {first.pk} ends in about 6 min."
    )


def test_for_its_turn() -> None:
    make_worker()
    now = timezone.now()
    make_job(queued_at=now - timedelta(minutes=2))
    one_ahead = make_job(queued_at=now - timedelta(minutes=1))
    two_ahead = make_job(queued_at=now)
    assert waiting_for(one_ahead) == "1 job is ahead of it in the queue “default”."
    assert waiting_for(two_ahead) == "2 jobs are ahead of it in the queue “default”."


def test_a_higher_priority_is_ahead_however_late() -> None:
    make_worker()
    job = make_job(queued_at=timezone.now() - timedelta(hours=1))
    make_job(priority=1)
    assert waiting_for(job).startswith("1 job")


def test_for_a_worker_that_is_about_to_take_it() -> None:
    make_worker()
    assert waiting_for(make_job()) == "It is next in line; a worker is about to take it."


def test_for_a_device_in_service() -> None:
    worker = make_worker()
    worker.devices.update(quarantine_reason="a process was left")
    assert "too few devices in service" in waiting_for(make_job())


def test_a_job_that_does_not_wait_waits_for_nothing() -> None:
    running = make_job()
    start(running)
    assert waiting_for(running) == ""
    assert waiting_for(make_ended_job(worker=make_worker("other"))) == ""


def test_many_devices_cost_no_more_queries(django_assert_max_num_queries: object) -> None:
    for number in range(4):
        start(make_job(), make_worker(f"host-{number}", num_gpus=0))
    job = make_job()
    with django_assert_max_num_queries(7):  # type: ignore[operator]
        waiting_for(job)
