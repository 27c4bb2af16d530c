"""`/metrics`: what it tells, and to whom."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from jobs.contract.facts import DeviceSample
from jobs.contract.states import Outcome
from jobs.models import Attempt, Queue, User, Worker
from jobs.services.queues import pause_queue
from jobs.services.tokens import create_token
from jobs.services.workers import drain_worker, record_samples
from tests.jobs.conftest import client_of
from tests.jobs.factories import make_ended_job, make_job, make_queue, make_user, make_worker, start

pytestmark = pytest.mark.django_db


@pytest.fixture
def boss(db: None) -> User:
    return make_user("boss", is_staff=True)


def scrape(client: Client) -> dict[tuple[str, ...], float]:
    """Every value by its name and the values of its labels, by the labels' names; Prometheus' own parser reads it."""
    text = client.get("/metrics").content.decode()
    families = text_string_to_metric_families(text)
    return {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}


def test_queues_tell_their_depth_their_oldest_wait_and_their_pause(boss: User, queue: Queue) -> None:
    make_worker()
    start(make_job())
    make_job(queued_at=timezone.now() - timedelta(minutes=10))
    make_job()
    pause_queue(make_queue("night"), boss, "why")
    told = scrape(client_of(boss))
    assert told["pitwall_queue_jobs", "default", "queued"] == 2
    assert told["pitwall_queue_jobs", "default", "running"] == 1
    assert told["pitwall_queue_oldest_wait_seconds", "default"] == pytest.approx(600, abs=10)
    assert [told["pitwall_queue_paused", name] for name in ("default", "night")] == [0, 1]
    assert told["pitwall_queue_workers", "default"] == 1


def test_waits_of_the_last_hour_are_told_by_quantile(boss: User) -> None:
    now = timezone.now()
    for minutes in range(1, 11):
        job = make_ended_job(queued_at=now - timedelta(minutes=minutes), losses=[])
        Attempt.objects.filter(job=job).update(claimed_at=now)
    told = scrape(client_of(boss))
    assert told["pitwall_started_last_hour", "default"] == 10
    assert told["pitwall_wait_seconds", "0.5", "default"] == pytest.approx(360, abs=1)
    assert told["pitwall_wait_seconds", "1.0", "default"] == pytest.approx(600, abs=1)


def test_outcomes_only_ever_grow(boss: User) -> None:
    for outcome in (Outcome.SUCCEEDED, Outcome.SUCCEEDED, Outcome.OUT_OF_MEMORY):
        make_ended_job(outcome=outcome, losses=[])
    told = scrape(client_of(boss))
    assert told["pitwall_attempts_ended_total", "succeeded"] == 2
    assert told["pitwall_attempts_ended_total", "out_of_memory"] == 1
    assert told["pitwall_attempts_ended_total", "lost"] == 0


def test_leases_and_heartbeats_show_who_is_silent(boss: User) -> None:
    start(make_job(), make_worker("a"))
    silent = start(make_job(), make_worker("b"))
    long_ago = timezone.now() - timedelta(minutes=5)
    Attempt.objects.filter(pk=silent.pk).update(lease_expires_at=long_ago, heartbeat_at=long_ago)
    Worker.objects.filter(hostname="b").update(heartbeat_at=long_ago)
    told = scrape(client_of(boss))
    assert (told["pitwall_leases", "held"], told["pitwall_leases", "expired"]) == (1, 1)
    assert told["pitwall_oldest_supervisor_heartbeat_seconds",] == pytest.approx(300, abs=10)
    assert (told["pitwall_worker_online", "a"], told["pitwall_worker_online", "b"]) == (1, 0)
    assert told["pitwall_worker_heartbeat_age_seconds", "b"] == pytest.approx(300, abs=10)


def test_devices_tell_their_lease_and_what_they_are_busy_with(boss: User) -> None:
    worker = make_worker("apex", num_gpus=2)
    start(make_job(), worker)
    first, second = worker.devices.filter(kind="cuda")
    record_samples({first.pk: DeviceSample(utilization_percent=93, memory_used_bytes=2**30, power_w=412)})
    worker.devices.filter(pk=second.pk).update(quarantine_reason="a process was left")
    drain_worker(worker, boss)
    told = scrape(client_of(boss))
    assert sum(told["pitwall_device_leased", name, "apex"] for name in ("cpu:0", "cuda:0", "cuda:1")) == 1
    assert [told["pitwall_device_in_service", f"cuda:{index}", "apex"] for index in (0, 1)] == [1, 0]
    assert told["pitwall_device_utilization_ratio", "cuda:0", "apex"] == pytest.approx(0.93)
    assert told["pitwall_device_memory_used_bytes", "cuda:0", "apex"] == 2**30
    assert ("pitwall_device_temperature_celsius", "cuda:0", "apex") not in told
    assert told["pitwall_worker_draining", "apex"] == 1


def test_an_empty_pitwall_is_well_formed(boss: User) -> None:
    assert scrape(client_of(boss))["pitwall_leases", "held"] == 0


def bearing(token: str) -> Client:
    return Client(headers={"Authorization": f"Bearer {token}"})


@pytest.fixture
def metrics_token(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(settings.ENVIRONMENT, "metrics_token", "scrape me")
    return "scrape me"


def test_prometheus_reads_with_its_token(metrics_token: str) -> None:
    assert bearing(metrics_token).get("/metrics").status_code == 200
    assert bearing("something else").get("/metrics").status_code == 401


@pytest.mark.parametrize("header", ["Bearer ", "Bearer", "Basic c2NyYXBlIG1l", "scrape me", "Bearer näher"])
def test_nothing_else_is_a_token(metrics_token: str, header: str) -> None:
    assert Client(headers={"Authorization": header}).get("/metrics").status_code == 401


def test_without_a_token_of_its_own_only_staff_read(alice: User, boss: User) -> None:
    assert Client().get("/metrics").status_code == 401
    assert bearing("").get("/metrics").status_code == 401
    assert bearing(create_token(alice)[1]).get("/metrics").status_code == 401
    assert bearing(create_token(boss)[1]).get("/metrics").status_code == 200
    member, staff = Client(), Client()
    member.force_login(alice)
    staff.force_login(boss)
    assert (member.get("/metrics").status_code, staff.get("/metrics").status_code) == (401, 200)


def test_a_wrong_token_is_not_made_up_for_by_a_session(boss: User) -> None:
    client = bearing("nonsense")
    client.force_login(boss)
    assert client.get("/metrics").status_code == 401


def test_a_larger_fleet_costs_no_more_queries(boss: User, django_assert_max_num_queries: object) -> None:
    for number in range(5):
        make_worker(f"host-{number}", queues=[f"q{number}"], num_gpus=2)
    client = client_of(boss)
    client.get("/metrics")
    with django_assert_max_num_queries(16):  # type: ignore[operator]
        client.get("/metrics")
