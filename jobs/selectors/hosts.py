"""What the workers can do: their facts and catalogs, and what they say to a spec."""

from collections.abc import Sequence
from datetime import timedelta

from django.db.models import QuerySet
from django.utils import timezone

from jobs.contract.catalog import BUILT_IN, Catalog, DatasetInfo
from jobs.contract.facts import HostFacts
from jobs.contract.findings import Finding
from jobs.contract.rules import check, refusals
from jobs.contract.spec import TrainSpec
from jobs.models import Queue, Worker
from jobs.timings import timings

Abilities = tuple[HostFacts, Catalog]


def online_workers() -> QuerySet[Worker]:
    """Workers that were heard from within three heartbeats and have not said good-bye."""
    oldest = timezone.now() - timedelta(seconds=3 * timings().heartbeat_s)
    return Worker.objects.filter(heartbeat_at__gte=oldest, stopped_at=None)


def findings_for(spec: TrainSpec, queue: Queue) -> list[Finding]:
    """What the queue's workers say to a spec: refusals only if every one of them refuses.

    Without a worker online only the rules that need no machine speak; the engine asks again on the real device.
    """
    return mildest_findings(spec, [abilities(worker) for worker in online_workers().filter(queues=queue)])


def abilities(worker: Worker) -> Abilities:
    """What a worker's answers rest on; reading it from the row costs more than asking."""
    return worker.host_facts, worker.host_catalog


def mildest_findings(spec: TrainSpec, hosts: Sequence[Abilities]) -> list[Finding]:
    """The answer of the host that refuses least; without any host, what the rules say that need none."""
    answers = [check(spec, facts, catalog) for facts, catalog in hosts] or [check(spec, None, BUILT_IN)]
    return min(answers, key=lambda findings: len(refusals(findings)))


def known_catalog() -> Catalog:
    """The union of all online workers' catalogs; the built-in one where none is online."""
    catalogs = [worker.host_catalog for worker in online_workers()] or [BUILT_IN]
    models = {info.name: info for catalog in catalogs for info in catalog.models}
    datasets: dict[str, DatasetInfo] = {}
    for info in (info for catalog in catalogs for info in catalog.datasets):
        if info.name not in datasets or datasets[info.name].unavailable:  # one worker that has it is enough
            datasets[info.name] = info
    return Catalog(models=list(models.values()), datasets=list(datasets.values()))
