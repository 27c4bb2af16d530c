"""What the workers can do: their facts and catalogs, and what they say to a spec."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

from django.db.models import QuerySet
from django.utils import timezone

from jobs.contract.catalog import BUILT_IN, Catalog, DatasetInfo
from jobs.contract.facts import HostFacts
from jobs.contract.findings import Finding
from jobs.contract.messages import gettext_noop as _
from jobs.contract.rules import check, refusals, resolve_device_kind
from jobs.contract.rules.table import warn
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
    willing = [facts for (facts, _catalog), findings in zip(hosts, answers, strict=False) if not refusals(findings)]
    return min(answers, key=lambda findings: len(refusals(findings))) + _too_few(spec, willing)


def _too_few(spec: TrainSpec, willing: Sequence[HostFacts]) -> list[Finding]:
    """A warning where the job has more nodes than there are hosts now that would take part."""
    most = max(Counter(likeness(spec, facts) for facts in willing).values(), default=0)
    if spec.num_nodes == 1 or not willing or most >= spec.num_nodes:
        return []
    message = _("%(asked)s nodes must be alike, and %(found)s such workers of the queue are online: the job will wait.")
    return [warn("num_nodes", message, asked=spec.num_nodes, found=most)]


def likeness(spec: TrainSpec, facts: HostFacts) -> tuple[str, ...]:
    """What hosts must have in common to be nodes of one job: its device's model, and the versions that train on it."""
    kind = resolve_device_kind(spec, facts)
    names = sorted({device.name for device in facts.devices_of(kind)})
    return (kind, facts.torch_version, facts.engine_version, *names)


def known_catalog() -> Catalog:
    """The union of all online workers' catalogs; the built-in one where none is online."""
    catalogs = [worker.host_catalog for worker in online_workers()] or [BUILT_IN]
    models = {info.name: info for catalog in catalogs for info in catalog.models}
    datasets: dict[str, DatasetInfo] = {}
    for info in (info for catalog in catalogs for info in catalog.datasets):
        if info.name not in datasets or datasets[info.name].unavailable:  # one worker that has it is enough
            datasets[info.name] = info
    return Catalog(models=list(models.values()), datasets=list(datasets.values()))
