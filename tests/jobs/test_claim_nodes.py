"""Jobs of several nodes: all their devices at once or none, on hosts that are alike."""

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.contract.states import Outcome
from jobs.models import Attempt, AttemptNode, Device, Job, Queue, Worker
from jobs.selectors.hosts import findings_for
from jobs.selectors.starts import estimate_starts
from jobs.selectors.waiting import waiting_for
from jobs.services.claim import claim_next
from jobs.services.finish import finish_attempt
from jobs.timings import timings
from tests.jobs.factories import make_job, make_queue, make_spec, make_worker, points, record, start

pytestmark = pytest.mark.django_db

ONE_GPU = {"device": "cuda"}
TWO_NODES = {"device": "cuda", "num_nodes": 2, "parallelism": "ddp"}


def make_wide(**values: object) -> Job:
    return make_job(spec=make_spec(**TWO_NODES), **values)


def claim(worker: Worker) -> int | None:
    attempt = claim_next(worker.pk)
    return attempt.job_id if attempt else None


def overdue() -> dict[str, object]:
    return {"queued_at": timezone.now() - timedelta(seconds=timings().reserve_after_s + 1)}


def free(job_id: int) -> None:
    AttemptNode.objects.filter(attempt__job=job_id).update(ended_at=timezone.now())
    finish_attempt(Attempt.objects.get(job=job_id, outcome=None), Outcome.SUCCEEDED)


def test_the_host_that_claims_leads_and_the_others_get_a_row_each() -> None:
    job, a, b = make_wide(), make_worker("a", num_gpus=2), make_worker("b", num_gpus=2)
    attempt = claim_next(b.pk)
    assert attempt is not None
    assert (attempt.job_id, attempt.worker) == (job.pk, b)
    assert list(attempt.nodes.values_list("rank", "worker")) == [(1, a.pk)]
    assert sorted(attempt.devices.values_list("worker__hostname", "kind", "index")) == [
        ("a", "cuda", 0),
        ("b", "cuda", 0),
    ]


def test_each_node_gives_as_many_devices_as_the_job_asks_for() -> None:
    make_job(spec=make_spec(**TWO_NODES | {"num_devices": 2}))
    a, b = make_worker("a", num_gpus=2), make_worker("b", num_gpus=1)
    assert (claim(a), claim(b)) == (None, None), "b has one only"
    make_worker("c", num_gpus=3)
    attempt = claim_next(a.pk)
    assert attempt is not None
    assert attempt.devices.count() == 4
    assert not Device.objects.filter(worker=b).exclude(attempt=None)


@pytest.mark.parametrize(
    "change",
    [
        {"is_draining": True},
        {"stopped_at": "2020-01-01T00:00Z"},
        {"heartbeat_at": "2020-01-01T00:00Z"},
    ],
)
def test_nothing_is_leased_where_a_host_does_not_take_part(change: dict[str, object]) -> None:
    make_wide()
    a, b = make_worker("a", num_gpus=1), make_worker("b", num_gpus=1)
    Worker.objects.filter(pk=b.pk).update(**change)
    assert claim(a) is None
    assert not Device.objects.exclude(attempt=None)


def test_nothing_is_leased_where_the_only_other_host_is_busy_or_serves_other_queues_or_is_not_alike() -> None:
    a = make_worker("a", num_gpus=1)
    busy = make_worker("busy", num_gpus=1)
    single = make_job(spec=make_spec(**ONE_GPU))
    assert claim(busy) == single.pk
    make_worker("of another queue", queues=["other"], num_gpus=1)
    unlike = make_worker("unlike", num_gpus=1)
    Worker.objects.filter(pk=unlike.pk).update(facts=unlike.facts | {"torch_version": "2.11.0"})
    job = make_wide()
    assert claim(a) is None
    assert Device.objects.exclude(attempt=None).count() == 1
    free(single.pk)
    assert claim(a) == job.pk


def test_small_jobs_pass_it_until_it_has_waited_too_long_and_then_it_holds_its_hosts() -> None:
    a, b = make_worker("a", num_gpus=1), make_worker("b", num_gpus=1)
    on_b = make_job(spec=make_spec(**ONE_GPU))
    assert claim(b) == on_b.pk
    wide = make_wide()
    small = make_job(spec=make_spec(**ONE_GPU))
    assert claim(a) == small.pk
    free(small.pk)
    Job.objects.filter(pk=wide.pk).update(**overdue())
    later = make_job(spec=make_spec(**ONE_GPU))
    assert claim(a) is None, "a is held for the job of two nodes"
    c = make_worker("c", num_gpus=1)
    assert claim(c) == wide.pk, "a and c are free at once"
    free(wide.pk)
    assert claim(a) == later.pk


def test_it_does_not_take_what_an_earlier_job_holds_on_another_host() -> None:
    a, b = make_worker("a", num_gpus=1), make_worker("b", num_gpus=2)
    on_b = make_job(spec=make_spec(**ONE_GPU))
    assert claim(b) == on_b.pk
    pair = make_job(spec=make_spec(device="cuda", num_devices=2, parallelism="ddp"), **overdue())
    wide = make_wide()
    assert claim(a) is None, "the free one of b is held for the pair"
    free(on_b.pk)
    assert claim(b) == pair.pk
    assert claim(a) is None
    free(pair.pk)
    assert claim(a) == wide.pk


def test_the_end_frees_the_leader_s_devices_and_those_of_nodes_that_have_ended() -> None:
    make_wide()
    a, b = make_worker("a", num_gpus=1), make_worker("b", num_gpus=1)
    attempt = claim_next(a.pk)
    assert attempt is not None
    finish_attempt(attempt, Outcome.FAILED)
    assert list(attempt.devices.values_list("worker", flat=True)) == [b.pk], "b has not said that nothing is left there"


def test_what_it_waits_for_in_words() -> None:
    a = make_worker("a", num_gpus=1)
    wide = make_wide()
    assert waiting_for(wide) == (
        "It asks for 2 nodes that are alike. Online workers of the queue “default” that can take part: a."
    )
    make_worker("b", num_gpus=1)
    assert waiting_for(wide) == "It is next in line; a worker is about to take it."
    single = make_job(spec=make_spec(**ONE_GPU, num_steps=36_101))
    record(start(single, a), points([1, 101], train_loss=[3.0, 2.0]))  # 10 ms a step: 360 s left
    sentence = f"It is next in line and needs 2 hosts at once: b is free; on a job {single.pk} ends in about 6 min."
    assert waiting_for(wide) == sentence


def test_the_form_is_told_where_too_few_workers_could_take_part(queue: Queue) -> None:
    make_worker("a", num_gpus=1)
    (finding,) = [each for each in findings_for(make_spec(**TWO_NODES), queue) if each.field == "num_nodes"]
    assert finding.sentence == ("2 nodes must be alike, and 1 such workers of the queue are online: the job will wait.")
    make_worker("b", num_gpus=1)
    assert not [each for each in findings_for(make_spec(**TWO_NODES), queue) if each.field == "num_nodes"]


def test_it_is_said_to_start_when_the_last_of_its_hosts_is_free(queue: Queue) -> None:
    a = make_worker("a", num_gpus=1)
    make_worker("b", num_gpus=1)
    single = make_job(spec=make_spec(**ONE_GPU, num_steps=36_101))
    record(start(single, a), points([1, 101], train_loss=[3.0, 2.0]))
    wide = make_wide()
    assert estimate_starts(queue)[wide.pk] == pytest.approx(360, abs=5)


def test_a_job_of_several_nodes_in_a_queue_of_other_hosts_is_none_of_this_one_s_business() -> None:
    make_job(spec=make_spec(**TWO_NODES), queue=make_queue("other"), priority=9)
    plain = make_job()
    make_worker("b", queues=["other"])
    assert claim(make_worker("a")) == plain.pk
