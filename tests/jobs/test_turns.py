"""Whose turn it is: places, limits, and the job that waited long enough to hold devices back."""

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.contract.states import Outcome
from jobs.models import Attempt, Device, Job, Queue, Worker
from jobs.services.claim import claim_next
from jobs.services.finish import finish_attempt
from jobs.timings import timings
from tests.jobs.factories import make_job, make_queue, make_spec, make_team, make_user, make_worker

pytestmark = pytest.mark.django_db

ONE_GPU = {"device": "cuda"}
TWO_GPUS = {"device": "cuda", "num_devices": 2, "parallelism": "ddp"}


def claim(worker: Worker) -> int | None:
    """The number of the job that the worker gets."""
    attempt = claim_next(worker.pk)
    return attempt.job_id if attempt else None


def finish(job_id: int) -> None:
    finish_attempt(Attempt.objects.get(job=job_id, outcome=None), Outcome.SUCCEEDED)


def overdue() -> dict[str, object]:
    return {"queued_at": timezone.now() - timedelta(seconds=timings().reserve_after_s + 1)}


def test_the_database_tells_the_devices_that_a_spec_asks_for() -> None:
    job = Job.objects.get(pk=make_job(spec=make_spec(**TWO_GPUS)).pk)
    assert (job.device_kind, job.num_devices) == ("cuda", 2)


def test_a_job_that_was_moved_in_front_comes_first() -> None:
    first, second, third = make_job(), make_job(), make_job()
    Job.objects.filter(pk=third.pk).update(order_key=(first.order_key + second.order_key) / 2)
    claimed = [claim(make_worker(name)) for name in ("a", "b", "c")]
    assert claimed == [first.pk, third.pk, second.pk]


def test_a_job_that_was_moved_to_another_queue_is_taken_by_the_workers_of_that_one() -> None:
    job = make_job(queue=make_queue("slow"))
    assert claim(make_worker("a", queues=["fast"])) is None
    Job.objects.filter(pk=job.pk).update(queue=make_queue("fast"))
    assert claim(make_worker("b", queues=["slow"])) is None
    assert claim(make_worker("a", queues=["fast"])) == job.pk


def test_a_queue_runs_no_more_jobs_at_once_than_it_may(queue: Queue) -> None:
    Queue.objects.update(max_running=2)
    jobs = [make_job(queue=queue) for _number in range(3)]
    workers = [make_worker(name) for name in ("a", "b", "c")]
    assert [claim(worker) for worker in workers] == [jobs[0].pk, jobs[1].pk, None]
    finish(jobs[0].pk)
    assert claim(workers[2]) == jobs[2].pk


def test_a_full_queue_does_not_stop_another_one(queue: Queue) -> None:
    queue.max_running = 1
    queue.save()
    make_job(queue=queue, priority=9), make_job(queue=queue, priority=9)
    other = make_job(queue=make_queue("other"))
    a, b = (make_worker(name, queues=["default", "other"]) for name in "ab")
    claim(a)
    assert claim(b) == other.pk


def test_one_user_does_not_take_more_than_the_share_of_one(queue: Queue) -> None:
    Queue.objects.update(max_running_per_user=1)
    greedy, modest = make_user(), make_user()
    mine = [make_job(greedy, queue=queue) for _number in range(2)]
    theirs = make_job(modest, queue=queue)
    workers = [make_worker(name) for name in ("a", "b", "c")]
    assert [claim(worker) for worker in workers] == [mine[0].pk, theirs.pk, None]
    finish(mine[0].pk)
    assert claim(workers[2]) == mine[1].pk


def test_jobs_that_do_not_fit_here_do_not_hide_the_one_that_does() -> None:
    owner = make_user(team=make_team())
    for _number in range(120):
        make_job(owner, spec=make_spec(**ONE_GPU), priority=9)
    plain = make_job()
    assert claim(make_worker()) == plain.pk


def test_a_job_whose_spec_no_version_knows_any_more_does_not_stop_the_line() -> None:
    broken = make_job(priority=9)
    Job.objects.filter(pk=broken.pk).update(spec=broken.spec | {"no_such_option": 1})
    plain = make_job()
    assert claim(make_worker()) == plain.pk


def test_a_device_that_somebody_else_uses_is_not_leased() -> None:
    worker = make_worker(num_gpus=1)
    Device.objects.filter(kind="cuda").update(foreign_use="python (pid 12) of bob")
    make_job(spec=make_spec(**ONE_GPU))
    assert claim(worker) is None


def test_a_large_job_starts_within_its_bound_although_small_ones_keep_coming() -> None:
    """Whenever a device is free, a small job is there that would take it."""
    worker = make_worker(num_gpus=2)
    running = [claim_small(worker), claim_small(worker)]
    large = make_job(spec=make_spec(**TWO_GPUS))
    for _number in range(3):  # it has not waited long yet: the small ones pass it
        finish(running.pop(0))
        running.append(claim_small(worker))
    Job.objects.filter(pk=large.pk).update(**overdue())
    finish(running.pop(0))
    small = make_job(spec=make_spec(**ONE_GPU))
    assert claim(worker) is None, "the free device is held for the large job"
    finish(running.pop(0))
    assert claim(worker) == large.pk
    finish(large.pk)
    assert claim(worker) == small.pk


def claim_small(worker: Worker) -> int:
    job = make_job(spec=make_spec(**ONE_GPU))
    assert claim(worker) == job.pk
    return job.pk


def test_what_a_job_holds_back_is_only_its_own_kind_of_device() -> None:
    worker = make_worker(num_gpus=2)
    claim_small(worker)
    make_job(spec=make_spec(**TWO_GPUS), **overdue())
    make_job(spec=make_spec(**ONE_GPU))
    plain = make_job(spec=make_spec(device="cpu"))
    assert claim(worker) == plain.pk


def test_a_job_of_higher_priority_does_not_wait_for_one_that_holds_devices() -> None:
    worker = make_worker(num_gpus=2)
    claim_small(worker)
    make_job(spec=make_spec(**TWO_GPUS), **overdue())
    urgent = make_job(spec=make_spec(**ONE_GPU), priority=1)
    assert claim(worker) == urgent.pk


def test_a_job_holds_devices_only_on_the_host_that_lacks_least() -> None:
    near, far = make_worker("near", num_gpus=2), make_worker("far", num_gpus=4)
    claim_small(near)
    for _number in range(4):
        claim_small(far)
    make_job(spec=make_spec(**TWO_GPUS), **overdue())
    finish(Job.objects.filter(last_attempt__worker=far).earliest("pk").pk)
    small = make_job(spec=make_spec(**ONE_GPU))
    assert claim(near) is None
    assert claim(far) == small.pk


def test_a_host_that_is_not_online_holds_nothing_for_anybody() -> None:
    near, far = make_worker("near", num_gpus=2), make_worker("far", num_gpus=2)
    claim_small(near), claim_small(far)
    make_job(spec=make_spec(**TWO_GPUS), **overdue())
    small = make_job(spec=make_spec(**ONE_GPU))
    Worker.objects.filter(pk=near.pk).update(stopped_at=timezone.now())
    assert claim(far) is None, "near has gone, so far is the best host"
    assert claim(near) == small.pk
