"""`/metrics` in Prometheus' text format: queues, waits, outcomes, leases, heartbeats, devices; read when asked for."""

import secrets
from collections.abc import Iterable, Iterator
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db.models import Count
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from jobs.contract.states import Outcome
from jobs.models import Attempt, Queue
from jobs.selectors.fleet import DeviceState, QueueState, WorkerState, queue_states, worker_states
from jobs.selectors.use import recent_waits_s
from jobs.services.tokens import user_of_token

_DEVICE_GAUGES = {
    "utilization_percent": ("pitwall_device_utilization_ratio", "Utilization, 0 to 1.", 0.01),
    "memory_used_bytes": ("pitwall_device_memory_used_bytes", "Memory in use.", 1.0),
    "temperature_c": ("pitwall_device_temperature_celsius", "Temperature.", 1.0),
    "power_w": ("pitwall_device_power_watts", "Power drawn.", 1.0),
}


class FleetCollector(Collector):
    """Reads the database once per scrape; a dozen queries."""

    def collect(self) -> Iterable[Metric]:
        """All metrics."""
        queues, workers = queue_states(), worker_states()
        yield from _of_queues(queues)
        yield from _of_waits([state.queue for state in queues])
        yield from _of_attempts()
        yield from _of_workers(workers)
        yield from _of_devices(workers)


def _of_queues(queues: list[QueueState]) -> Iterator[Metric]:
    jobs = GaugeMetricFamily(
        "pitwall_queue_jobs", "Jobs of a queue by state; counted up to 10,001.", labels=["queue", "state"]
    )
    oldest = GaugeMetricFamily("pitwall_queue_oldest_wait_seconds", "Age of the oldest waiting job.", labels=["queue"])
    paused = GaugeMetricFamily("pitwall_queue_paused", "1 while nothing is taken from it.", labels=["queue"])
    serving = GaugeMetricFamily("pitwall_queue_workers", "Online workers that serve it.", labels=["queue"])
    for state in queues:
        name = state.queue.name
        jobs.add_metric([name, "queued"], state.depth)
        jobs.add_metric([name, "running"], state.running)
        oldest.add_metric([name], state.oldest_wait_s or 0.0)
        paused.add_metric([name], state.is_paused)
        serving.add_metric([name], len(state.worker_names))
    yield from (jobs, oldest, paused, serving)


def _of_waits(queues: list[Queue]) -> Iterator[Metric]:
    waits = GaugeMetricFamily(
        "pitwall_wait_seconds", "Waits of the jobs that started in the last hour.", labels=["queue", "quantile"]
    )
    started = GaugeMetricFamily("pitwall_started_last_hour", "Jobs that started in the last hour.", labels=["queue"])
    recent = recent_waits_s()
    for queue in queues:
        values = sorted(recent.get(queue.pk, []))
        started.add_metric([queue.name], len(values))
        for quantile in (0.5, 0.9, 1.0) if values else ():
            waits.add_metric([queue.name, str(quantile)], values[min(len(values) - 1, int(quantile * len(values)))])
    yield from (waits, started)


def _of_attempts() -> Iterator[Metric]:
    ended = CounterMetricFamily(
        "pitwall_attempts_ended", "Attempts by outcome, all that ever ended.", labels=["outcome"]
    )
    counted = Attempt.objects.exclude(outcome=None).order_by().values_list("outcome").annotate(count=Count("pk"))
    counts: dict[Any, int] = dict(counted)
    for outcome in Outcome:
        ended.add_metric([outcome.value], counts.get(outcome.value, 0))
    live = Attempt.objects.filter(outcome=None)
    leases = GaugeMetricFamily("pitwall_leases", "Leases of attempts that have not ended.", labels=["state"])
    expired = live.filter(lease_expires_at__lt=Now()).count()
    leases.add_metric(["held"], live.count() - expired)
    leases.add_metric(["expired"], expired)
    beat = GaugeMetricFamily(
        "pitwall_oldest_supervisor_heartbeat_seconds", "Age of the oldest heartbeat of an attempt."
    )
    oldest = live.order_by("heartbeat_at").values_list("heartbeat_at", flat=True).first()
    beat.add_metric([], (timezone.now() - oldest).total_seconds() if oldest else 0.0)
    yield from (ended, leases, beat)


def _of_workers(workers: list[WorkerState]) -> Iterator[Metric]:
    beat = GaugeMetricFamily("pitwall_worker_heartbeat_age_seconds", "Since it was heard from.", labels=["worker"])
    online = GaugeMetricFamily("pitwall_worker_online", "1 while it is heard from.", labels=["worker"])
    draining = GaugeMetricFamily("pitwall_worker_draining", "1 while it takes no new jobs.", labels=["worker"])
    for state in workers:
        name = state.worker.hostname
        beat.add_metric([name], state.heartbeat_age_s)
        online.add_metric([name], state.is_online)
        draining.add_metric([name], state.is_draining)
    yield from (beat, online, draining)


def _of_devices(workers: list[WorkerState]) -> Iterator[Metric]:
    labels = ["worker", "device"]
    leased = GaugeMetricFamily("pitwall_device_leased", "1 while a job holds it.", labels=labels)
    service = GaugeMetricFamily("pitwall_device_in_service", "1 where jobs may start on it.", labels=labels)
    told = {
        name: (GaugeMetricFamily(metric, text, labels=labels), scale)
        for name, (metric, text, scale) in _DEVICE_GAUGES.items()
    }
    for worker in workers:
        for state in worker.devices:
            place = [worker.worker.hostname, f"{state.device.kind}:{state.device.index}"]
            leased.add_metric(place, state.job_id is not None)
            service.add_metric(place, state.device.is_in_service)
            _add_sample(told, place, state)
    yield from (leased, service, *(family for family, _scale in told.values()))


def _add_sample(told: dict[str, tuple[GaugeMetricFamily, float]], place: list[str], state: DeviceState) -> None:
    for name, value in state.sample.model_dump(exclude_none=True).items():
        family, scale = told[name]
        family.add_metric(place, value * scale)


_REGISTRY = CollectorRegistry()
_REGISTRY.register(FleetCollector())


@login_not_required
@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """For Prometheus with `PITWALL_METRICS_TOKEN`, and for staff by their session or token; 401 for everybody else."""
    if not _may_read(request):
        refused = HttpResponse("Send the metrics token, or a token of staff.\n", status=401, content_type="text/plain")
        refused["WWW-Authenticate"] = "Bearer"
        return refused
    return HttpResponse(generate_latest(_REGISTRY), content_type=CONTENT_TYPE_LATEST)


def _may_read(request: HttpRequest) -> bool:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        return bool(request.user.is_authenticated and request.user.is_staff)
    expected = settings.ENVIRONMENT.metrics_token
    if expected and secrets.compare_digest(token.strip().encode(), expected.encode()):
        return True
    user = user_of_token(token.strip())
    return user is not None and user.is_staff
