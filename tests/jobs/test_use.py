"""Charts of a day and a week: held against a count by another way, and against Plotly."""

import random
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

import plotly.graph_objects as go
import pytest
from django.test import Client
from django.utils import timezone

from jobs.contract.facts import DeviceSample
from jobs.figures import outcomes_figure, use_figure, waits_figure
from jobs.models import Attempt, Device, DeviceUse, Job, Queue, User, Worker
from jobs.selectors.use import Span, buckets_of, read_outcomes, read_use, read_waits
from jobs.services.workers import drop_old_uses, record_samples
from tests.jobs.factories import make_job, make_queue, make_spec, make_user, make_worker
from tests.web.conftest import browser_of

pytestmark = pytest.mark.django_db


def make_attempt(
    worker: Worker,
    queued_at: datetime,
    claimed_at: datetime,
    ended_at: datetime | None,
    outcome: str = "succeeded",
    queue: Queue | None = None,
    **spec: object,
) -> Attempt:
    state = {"state": outcome, "outcome": outcome} if ended_at else {"state": "running"}
    job = make_job(queue=queue, spec=make_spec(**spec), queued_at=queued_at, ended_at=ended_at, **state)
    return Attempt.objects.create(
        job=job,
        number=1,
        fence=1,
        worker=worker,
        claimed_at=claimed_at,
        ended_at=ended_at,
        outcome=outcome if ended_at else None,
        heartbeat_at=claimed_at,
        lease_expires_at=claimed_at,
        resolved_spec=job.spec | {"device": spec.get("device", "cpu")},
    )


@pytest.fixture
def now() -> datetime:
    return timezone.now()


@pytest.fixture
def gpus(db: None) -> Worker:
    return make_worker("apex", num_gpus=2)


@pytest.fixture
def life(gpus: Worker, now: datetime) -> list[Attempt]:
    """A week of jobs on one and two GPUs, some of which still run."""
    dice = random.Random(5)
    attempts = []
    for _ in range(60):
        claimed_at = now - timedelta(hours=dice.uniform(0.1, 180))
        ended_at: datetime | None = claimed_at + timedelta(hours=dice.uniform(0.01, 9))
        ended_at = ended_at if ended_at and ended_at < now else None
        count = dice.choice([1, 2])
        queued_at = claimed_at - timedelta(minutes=dice.uniform(0, 90))
        outcome = dice.choice(["succeeded", "failed", "cancelled"])
        attempts.append(make_attempt(gpus, queued_at, claimed_at, ended_at, outcome, device="cuda", num_devices=count))
    return attempts


@pytest.mark.parametrize("span", list(Span))
def test_the_share_of_time_is_what_looking_every_minute_finds(life: list[Attempt], now: datetime, span: Span) -> None:
    use = read_use(span, now)
    [host] = [host for host in use.hosts if host.kind == "cuda"]
    minutes = round(use.buckets.size / timedelta(minutes=1))
    for index, opens in enumerate(use.buckets.starts):
        held = 0
        for minute in range(minutes):
            moment = opens + timedelta(minutes=minute + 0.5)
            running = [a for a in life if a.claimed_at <= moment and (a.ended_at is None or moment < a.ended_at)]
            held += sum(attempt.job.spec["num_devices"] for attempt in running)
        assert host.leased[index] == pytest.approx(min(1.0, held / minutes / 2), abs=0.03)


@pytest.mark.parametrize("span", list(Span))
def test_waits_are_those_of_the_jobs_that_started_in_each_part(life: list[Attempt], now: datetime, span: Span) -> None:
    waits = read_waits(span, now=now)
    for index, opens in enumerate(waits.buckets.starts):
        mine = [
            (attempt.claimed_at - attempt.job.queued_at).total_seconds()
            for attempt in life
            if opens <= attempt.claimed_at < opens + waits.buckets.size
        ]
        assert waits.num_started[index] == len(mine)
        assert waits.median_s[index] == (pytest.approx(median(mine)) if mine else None)
        worst, p90 = max(mine, default=None), waits.p90_s[index]
        assert (p90 is None) == (worst is None)
        assert p90 is None or worst is None or median(mine) <= p90 <= worst


def test_what_ended_is_counted_by_outcome(life: list[Attempt], now: datetime) -> None:
    outcomes = read_outcomes(Span.WEEK, now=now)
    since = outcomes.buckets.began_at
    for outcome in ("succeeded", "failed", "cancelled"):
        mine = [attempt for attempt in life if attempt.outcome == outcome and attempt.ended_at >= since]  # type: ignore[operator]
        assert sum(outcomes.counts.get(outcome, [0])) == len(mine)


def test_one_queue_is_shown_without_the_others(gpus: Worker, now: datetime) -> None:
    hour = timedelta(hours=1)
    for name, count in (("day", 2), ("night", 3)):
        for _ in range(count):
            make_attempt(gpus, now - 2 * hour, now - hour, now, queue=make_queue(name))
    day = Queue.objects.get(name="day")
    later = now + timedelta(seconds=1)
    assert sum(read_waits(Span.DAY, day, later).num_started) == 2
    assert sum(sum(counts) for counts in read_outcomes(Span.DAY, day, later).counts.values()) == 2
    assert sum(read_waits(Span.DAY, now=later).num_started) == 5


def test_a_cpu_is_one_device_however_many_ranks_compute_on_it(now: datetime) -> None:
    worker = make_worker("small")
    make_attempt(worker, now - timedelta(hours=9), now - timedelta(hours=30), None, num_devices=4)
    [host] = read_use(Span.DAY, now).hosts
    assert host.leased == [1.0] * 24


def test_an_imported_run_and_a_second_attempt_never_waited(gpus: Worker, now: datetime) -> None:
    hour = timedelta(hours=1)
    imported = make_attempt(gpus, now - 2 * hour, now - hour, now)
    Job.objects.filter(pk=imported.job_id).update(origin="imported")
    requeued = make_attempt(gpus, now - 3 * hour, now - 2 * hour, now - hour)
    Job.objects.filter(pk=requeued.job_id).update(queued_at=now)
    assert sum(read_waits(Span.DAY, now=now).num_started) == 0


def test_samples_become_the_last_one_and_a_share_of_their_five_minutes(gpus: Worker) -> None:
    device = gpus.devices.get(kind="cuda", index=0)
    for percent in (10, 50, 90):
        record_samples({device.pk: DeviceSample(utilization_percent=percent, memory_used_bytes=percent * 2**30)})
    device.refresh_from_db()
    assert device.sample == {"utilization_percent": 90, "memory_used_bytes": 90 * 2**30}
    uses = list(DeviceUse.objects.filter(device=device))
    assert sum(use.num_samples for use in uses) == 3
    assert sum(use.utilization_sum_percent for use in uses) == 150
    assert max(use.most_memory_bytes for use in uses) == 90 * 2**30
    [host] = [host for host in read_use(Span.DAY).hosts if host.kind == "cuda"]
    assert [value for value in host.busy if value is not None] == [pytest.approx(0.5, abs=0.41)]


def test_samples_are_kept_for_a_little_more_than_a_week(gpus: Worker, now: datetime) -> None:
    device = Device.objects.first()
    for days in (1, 7, 9):
        DeviceUse.objects.create(device=device, began_at=now - timedelta(days=days), num_samples=1)
    drop_old_uses()
    assert DeviceUse.objects.count() == 2


def test_the_parts_of_a_day_and_a_week_touch_and_end_now(now: datetime) -> None:
    for span, length in ((Span.DAY, timedelta(days=1)), (Span.WEEK, timedelta(days=7))):
        buckets = buckets_of(span, now)
        assert (buckets.ends_at, buckets.ends_at - buckets.began_at) == (now, length)
        assert all(after - before == buckets.size for before, after in pairwise(buckets.starts))


def test_plotly_takes_every_figure_and_shows_what_was_read(life: list[Attempt], now: datetime) -> None:
    waits, outcomes, use = read_waits(Span.DAY, now=now), read_outcomes(Span.DAY, now=now), read_use(Span.DAY, now)
    figures = [waits_figure(waits), outcomes_figure(outcomes), use_figure(use, "leased"), use_figure(use, "busy")]
    for figure in figures:
        go.Figure(figure)
    median_line = figures[0]["data"][0]
    assert median_line["y"] == [None if value is None else pytest.approx(value / 60) for value in waits.median_s]
    assert {trace["name"]: trace["y"] for trace in figures[1]["data"]} == {
        name.capitalize(): counts for name, counts in outcomes.counts.items()
    }
    assert figures[2]["data"][0]["y"] == ["apex · 2 GPU"], "the CPU of a GPU host that no job held has no row"
    assert figures[3]["data"][0]["y"] == []


def test_staff_fetch_the_figures_and_nobody_else(life: list[Attempt], alice: User) -> None:
    staff: Client = browser_of(make_user(is_staff=True))
    figures = staff.get("/fleet/use/figures/?span=week&queue=default").json()
    assert set(figures) == {"waits", "outcomes", "leased", "busy"}
    assert len(figures["waits"]["data"][0]["x"]) == 28
    assert staff.get("/fleet/use/figures/?queue=nowhere").status_code == 404
    assert staff.get("/fleet/use/").status_code == 200
    member = browser_of(alice)
    assert member.get("/fleet/use/").status_code == member.get("/fleet/use/figures/").status_code == 403


def test_a_chart_costs_a_fixed_number_of_queries(life: list[Attempt], django_assert_num_queries: object) -> None:
    with django_assert_num_queries(4):  # type: ignore[operator]
        read_use(Span.WEEK)
    with django_assert_num_queries(1):  # type: ignore[operator]
        read_waits(Span.WEEK)
