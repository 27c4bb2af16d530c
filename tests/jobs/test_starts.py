"""When a waiting job starts, estimated from measured step times; and how long jobs take."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from jobs.models import Attempt, Job, Queue, User
from jobs.selectors.durations import Durations, Run, measured_durations, remaining_s
from jobs.selectors.starts import estimate_start, estimate_starts, turn_of
from jobs.services.queues import pause_queue
from tests.jobs.factories import make_ended_job, make_job, make_queue, make_spec, make_user, make_worker, points, record
from tests.jobs.factories import start as start_job

pytestmark = pytest.mark.django_db


def measure(total_s: float, step_time_ms: float, num_steps: int, **spec: object) -> None:
    """A run of the past that took so long in all, of which so many steps."""
    ended = make_ended_job(
        spec=make_spec(num_steps=num_steps, **spec),
        losses=[],
        summary={"steady_step_time_ms": step_time_ms},
        worker=make_worker("past", queues=["past"]),
        queue=make_queue("past"),
    )
    now = timezone.now()
    Attempt.objects.filter(job=ended).update(
        claimed_at=now - timedelta(seconds=total_s), ended_at=now, last_step=num_steps
    )


def run(job: Job, worker_name: str, *, seconds_left: int, **worker: object) -> None:
    """The job on a host of its own, a step every 10 ms, with so long to go."""
    Job.objects.filter(pk=job.pk).update(spec=job.spec | {"num_steps": 101 + 100 * seconds_left})
    job.refresh_from_db()
    record(start_job(job, make_worker(worker_name, **worker)), points([1, 101], train_loss=[2.0, 1.0]))


def approximately(seconds: float) -> object:
    return pytest.approx(seconds, abs=3)


def test_a_run_takes_its_steps_and_what_similar_runs_took_besides() -> None:
    measure(total_s=30, step_time_ms=20, num_steps=1000)  # 20 s of steps, 10 s besides
    spec = make_spec(num_steps=3000).model_dump(mode="json")
    assert measured_durations().expected_s(spec, "cpu") == approximately(70)
    assert measured_durations().expected_s(spec, "cuda") is None
    assert measured_durations().expected_s(spec | {"time_limit_s": 50}, "cpu") == 50


def test_runs_of_the_same_configuration_tell_more_than_others() -> None:
    measure(total_s=100, step_time_ms=100, num_steps=1000)
    measure(total_s=10, step_time_ms=10, num_steps=1000, precision="bf16-mixed")
    durations = measured_durations()
    for precision, seconds in (("fp32", 100), ("bf16-mixed", 10), ("bf16-true", 55)):
        spec = make_spec(num_steps=1000, precision=precision).model_dump(mode="json")
        assert durations.expected_s(spec, "cpu") == approximately(seconds)


def test_the_middle_of_several_runs_counts() -> None:
    durations, spec = Durations(), make_spec(num_steps=10).model_dump(mode="json") | {"device": "cpu"}
    for total_s in (10, 11, 1000):
        durations.add(spec, Run(total_s=total_s, step_s=1.0, num_steps=10))
    assert durations.expected_s(spec, "cpu") == 11


def test_what_runs_is_told_by_its_own_newest_steps() -> None:
    job = make_job(spec=make_spec(num_steps=1000))
    attempt = start_job(job)
    record(attempt, points([1, 2], train_loss=[3.0, 3.0]), points([100, 200], train_loss=[2.0, 1.0]))
    attempt.refresh_from_db()
    assert remaining_s([attempt], Durations(), timezone.now()) == {attempt.pk: approximately(8)}


def test_before_its_first_steps_other_runs_tell_and_without_them_nothing_does() -> None:
    attempt = start_job(make_job(spec=make_spec(num_steps=1000)))
    assert remaining_s([attempt], measured_durations(), timezone.now()) == {attempt.pk: None}
    measure(total_s=60, step_time_ms=50, num_steps=1000)
    assert remaining_s([attempt], measured_durations(), timezone.now()) == {attempt.pk: approximately(60)}


def test_jobs_start_one_after_the_other_on_one_device(queue: Queue) -> None:
    measure(total_s=100, step_time_ms=100, num_steps=1000)
    run(make_job(), "box", seconds_left=60)
    waiting = [make_job(spec=make_spec(num_steps=1000)) for _ in range(3)]
    starts = estimate_starts(queue)
    assert [starts[job.pk] for job in waiting] == [approximately(60), approximately(160), approximately(260)]


def test_two_hosts_share_the_line(queue: Queue) -> None:
    measure(total_s=100, step_time_ms=100, num_steps=1000)
    run(make_job(), "a", seconds_left=30)
    run(make_job(), "b", seconds_left=50)
    waiting = [make_job(spec=make_spec(num_steps=1000)) for _ in range(3)]
    assert [estimate_starts(queue)[job.pk] for job in waiting] == [approximately(s) for s in (30, 50, 130)]


def test_a_small_job_passes_a_large_one_until_that_has_waited_long_enough_to_hold_its_devices(queue: Queue) -> None:
    measure(total_s=100, step_time_ms=100, num_steps=1000)
    worker = {"num_gpus": 2}
    run(make_job(spec=make_spec(device="cuda")), "apex", seconds_left=40, **worker)
    both = make_job(spec=make_spec(device="cuda", num_devices=2, parallelism="ddp"))
    one = make_job(spec=make_spec(device="cuda"))
    assert estimate_starts(queue) == {both.pk: None, one.pk: 0}, "how long that one takes has never been measured"
    Job.objects.filter(pk=both.pk).update(queued_at=timezone.now() - timedelta(minutes=11))
    assert estimate_starts(queue) == {both.pk: approximately(40), one.pk: None}


def test_other_queues_of_the_same_workers_are_in_the_way_and_those_of_others_are_not(alice: User) -> None:
    measure(total_s=100, step_time_ms=100, num_steps=1000)
    make_worker("box", queues=["day", "night"])
    make_worker("far", queues=["far"])
    day, night, far = make_queue("day"), make_queue("night"), make_queue("far")
    make_job(queue=night, spec=make_spec(num_steps=1000))
    for _ in range(5):
        make_job(queue=far)
    mine = make_job(queue=day)
    assert estimate_starts(day) == {mine.pk: approximately(100)}


def test_a_limit_of_the_queue_lets_a_job_wait_beside_a_free_device(queue: Queue) -> None:
    Queue.objects.filter(pk=queue.pk).update(max_running=1)
    queue.refresh_from_db()
    run(make_job(), "a", seconds_left=30)
    make_worker("b")
    job = make_job()
    assert estimate_starts(queue) == {job.pk: approximately(30)}


def test_a_limit_per_user_holds_back_that_user_alone(queue: Queue, alice: User) -> None:
    Queue.objects.filter(pk=queue.pk).update(max_running_per_user=1)
    queue.refresh_from_db()
    run(make_job(alice), "a", seconds_left=30)
    make_worker("b")
    mine, theirs = make_job(alice), make_job(make_user())
    assert estimate_starts(queue) == {mine.pk: approximately(30), theirs.pk: approximately(0)}


def test_without_a_worker_in_service_nothing_can_be_told(queue: Queue) -> None:
    job = make_job()
    assert estimate_starts(queue) == {job.pk: None}
    make_worker().devices.update(quarantine_reason="a process was left")
    assert estimate_starts(queue) == {job.pk: None}


def test_a_job_that_would_be_submitted_now_goes_behind_the_others(queue: Queue, alice: User) -> None:
    measure(total_s=100, step_time_ms=100, num_steps=1000)
    make_worker()
    spec = make_spec(num_steps=1000)
    assert estimate_start(spec.model_dump(mode="json"), queue, alice.pk) == 0
    make_job(spec=spec)
    make_job(spec=spec, priority=-1)
    assert estimate_start(spec.model_dump(mode="json"), queue, alice.pk) == approximately(100)
    pause_queue(queue, alice, "why")
    assert estimate_start(spec.model_dump(mode="json"), queue, alice.pk) is None


def test_a_job_that_no_worker_could_run_takes_nobodys_turn(queue: Queue) -> None:
    make_worker()
    impossible, possible = make_job(spec=make_spec(device="cuda")), make_job()
    assert estimate_starts(queue) == {impossible.pk: None, possible.pk: 0}


def test_a_job_knows_its_place_and_its_start(queue: Queue, alice: User) -> None:
    measure(total_s=100, step_time_ms=100, num_steps=1000)
    make_worker()
    make_job(spec=make_spec(num_steps=1000))
    job = make_job(alice)
    turn = turn_of(job)
    assert turn
    assert (turn.place, turn.num_waiting, turn.starts_in_s) == (2, 2, approximately(100))
    pause_queue(queue, alice, "why")
    job.refresh_from_db()
    paused = turn_of(job)
    assert paused
    assert (paused.place, paused.starts_in_s) == (2, None)
    assert turn_of(make_ended_job(queue=make_queue("past"), worker=make_worker("past", queues=["past"]))) is None


def test_the_api_tells_place_and_start_and_when_a_submission_would_start(api: Client, alice: User) -> None:
    measure(total_s=100, step_time_ms=100, num_steps=1000)
    make_worker()
    make_job(spec=make_spec(num_steps=1000))
    job = api.get(f"/api/v1/jobs/{make_job(alice, spec=make_spec(num_steps=1000)).pk}").json()
    assert (job["place"], job["starts_in_s"]) == (2, approximately(100))
    body = make_spec(num_steps=1000).model_dump_json()
    check = api.post("/api/v1/check", body, content_type="application/json").json()
    assert check["starts_in_s"] == approximately(200)
