from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.contract.states import State
from jobs.models import Device, Queue
from jobs.services.claim import claim_next
from jobs.services.queues import pause_queue, resume_queue
from tests.jobs.factories import make_job, make_queue, make_spec, make_user, make_worker

pytestmark = pytest.mark.django_db


def test_a_claim_makes_an_attempt_and_leases_the_device() -> None:
    job, worker = make_job(), make_worker()
    attempt = claim_next(worker.pk)
    assert attempt is not None
    job.refresh_from_db()
    assert (job.state, job.fence, job.last_attempt) == (State.STARTING, 1, attempt)
    assert (attempt.number, attempt.fence, attempt.worker) == (1, 1, worker)
    assert attempt.lease_expires_at > timezone.now() + timedelta(seconds=30)
    assert Device.objects.get(attempt=attempt).worker == worker


def test_nothing_is_claimed_while_the_device_is_leased() -> None:
    make_job(), make_job()
    worker = make_worker()
    assert claim_next(worker.pk)
    assert claim_next(worker.pk) is None


def test_the_higher_priority_comes_first_and_then_the_longer_wait() -> None:
    now = timezone.now()
    late = make_job(queued_at=now)
    early = make_job(queued_at=now - timedelta(hours=1))
    urgent = make_job(queued_at=now, priority=5)
    claimed = []
    for name in ("a", "b", "c"):
        attempt = claim_next(make_worker(name).pk)
        assert attempt
        claimed.append(attempt.job_id)
    assert claimed == [urgent.pk, early.pk, late.pk]


def test_a_paused_queue_gives_nothing_until_it_is_resumed(queue: Queue) -> None:
    make_job(queue=queue)
    worker = make_worker()
    pause_queue(queue, make_user(), "maintenance")
    assert claim_next(worker.pk) is None
    resume_queue(queue, make_user())
    assert claim_next(worker.pk) is not None


def test_a_draining_worker_takes_nothing() -> None:
    make_job()
    worker = make_worker()
    worker.is_draining = True
    worker.save()
    assert claim_next(worker.pk) is None


def test_a_worker_takes_only_from_its_queues() -> None:
    make_job(queue=make_queue("gpu"))
    assert claim_next(make_worker().pk) is None
    assert claim_next(make_worker("other", queues=["gpu"]).pk) is not None


def test_a_job_that_asks_for_a_gpu_is_left_by_a_host_without_one() -> None:
    make_job(spec=make_spec(device="cuda"))
    plain = make_job()
    attempt = claim_next(make_worker().pk)
    assert attempt is not None
    assert attempt.job_id == plain.pk


def test_two_gpus_are_leased_together_or_not_at_all() -> None:
    worker = make_worker(num_gpus=2)
    make_job(spec=make_spec(device="cuda"), priority=1)
    two = make_job(spec=make_spec(device="cuda", num_devices=2, parallelism="ddp"))
    one = claim_next(worker.pk)
    assert one is not None
    assert claim_next(worker.pk) is None, "one free GPU is not enough"
    Device.objects.filter(attempt=one).update(attempt=None)
    both = claim_next(worker.pk)
    assert both is not None
    assert both.job_id == two.pk
    assert list(both.devices.values_list("kind", "index")) == [("cuda", 0), ("cuda", 1)]


def test_ranks_on_a_cpu_share_its_one_lease() -> None:
    make_job(spec=make_spec(device="cpu", num_devices=2, parallelism="ddp"))
    attempt = claim_next(make_worker().pk)
    assert attempt is not None
    assert attempt.devices.count() == 1


@pytest.mark.parametrize("values", [{"is_present": False}, {"quarantine_reason": "a process was left"}])
def test_a_device_out_of_service_is_not_leased(values: dict[str, object]) -> None:
    make_job()
    worker = make_worker()
    worker.devices.update(**values)
    assert claim_next(worker.pk) is None


def test_a_job_whose_end_was_requested_is_not_started() -> None:
    make_job(cancel_requested_at=timezone.now())
    assert claim_next(make_worker().pk) is None
