"""What a queued job waits for, in words."""

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from django.utils import timezone
from django.utils.translation import gettext, ngettext

from jobs.contract.findings import Finding
from jobs.contract.rules import check, refusals, resolve_device_kind
from jobs.contract.spec import DeviceKind
from jobs.contract.states import State
from jobs.messages import translate, translate_with_field
from jobs.models import Device, Job, Queue, Study, Worker
from jobs.selectors.durations import measured_durations, remaining_s
from jobs.selectors.fleet import with_devices
from jobs.selectors.hosts import likeness, online_workers
from jobs.selectors.line import ahead_of, count_up_to, is_held, waiting_in
from jobs.selectors.study_devices import of_its_type, suits, types_for
from jobs.selectors.turns import devices_needed, is_full, num_wanted, users_at_their_limit


def waiting_for(job: Job) -> str:
    """Why a queued job does not run yet, as a sentence; empty for every other job."""
    if job.state != State.QUEUED:
        return ""
    if job.queue.is_paused:
        return _paused(job.queue)
    if job.study and job.study.is_paused:
        return _held(job.study)
    workers = list(with_devices(online_workers().filter(queues=job.queue)))
    if not workers:
        return gettext("No worker that serves the queue “%(queue)s” is online.") % {"queue": job.queue.name}
    if all(worker.is_draining for worker in workers):
        return gettext("Every worker of the queue “%(queue)s” is draining and takes no new jobs.") % {
            "queue": job.queue.name
        }
    if unread := job.stored_spec.unread:
        return gettext("No worker can read what it asks for (%(why)s). Submit it anew.") % {
            "why": " ".join(map(translate_with_field, unread))
        }
    return _limit(job) or _obstacle(job, [worker for worker in workers if not worker.is_draining])


def _paused(queue: Queue) -> str:
    places = {
        "queue": queue.name,
        "reason": queue.pause_reason,
        "who": queue.paused_by.get_username() if queue.paused_by else "",
    }
    if queue.paused_by and queue.pause_reason:
        return gettext("The queue “%(queue)s” was paused by %(who)s: %(reason)s") % places
    if queue.pause_reason:
        return gettext("The queue “%(queue)s” is paused: %(reason)s") % places
    return gettext("The queue “%(queue)s” is paused.") % places


def _held(study: Study) -> str:
    places = {
        "study": study.name,
        "reason": study.pause_reason,
        "who": study.paused_by.get_username() if study.paused_by else "",
    }
    if study.paused_by and study.pause_reason:
        return gettext("Its study “%(study)s” was paused by %(who)s: %(reason)s") % places
    return gettext("Its study “%(study)s” is paused.") % places


def _limit(job: Job) -> str:
    """Which of its queue's limits keeps the job waiting; empty where none does."""
    queue = job.queue
    if is_full(queue):
        return ngettext(
            "The queue “%(queue)s” runs at most %(count)s job at once.",
            "The queue “%(queue)s” runs at most %(count)s jobs at once.",
            queue.max_running or 0,
        ) % {"queue": queue.name, "count": queue.max_running}
    if job.owner_id in users_at_their_limit(queue):
        return ngettext(
            "The queue “%(queue)s” runs at most %(count)s job of each user at once.",
            "The queue “%(queue)s” runs at most %(count)s jobs of each user at once.",
            queue.max_running_per_user or 0,
        ) % {"queue": queue.name, "count": queue.max_running_per_user}
    return ""


def _obstacle(job: Job, workers: list[Worker]) -> str:
    """What stands between the job and the workers that would take it."""
    answers = [(worker, _refusals(job, worker)) for worker in workers]
    able = [worker for worker, refused in answers if not refused]
    if not able:
        return gettext("No online worker of the queue “%(queue)s” can run it: %(why)s") % {
            "queue": job.queue.name,
            "why": translate(answers[0][1][0]),
        }
    types = types_for(job)
    able = [worker for worker in able if suits(job, worker.host_facts, types)]
    if not able:
        return _other_device(job)
    num_ahead = count_up_to(waiting_in(job.queue_id).filter(ahead_of(job)).exclude(is_held()))
    if num_ahead:
        return ngettext(
            "%(count)s job is ahead of it in the queue “%(queue)s”.",
            "%(count)s jobs are ahead of it in the queue “%(queue)s”.",
            num_ahead,
        ) % {"count": num_ahead, "queue": job.queue.name}
    num_nodes = job.train_spec.num_nodes
    alike = _most_alike(job, able)
    if len(alike) < num_nodes:
        return _too_few(job.queue, num_nodes, alike)
    if sum(_has_room(job, worker) for worker in alike) >= num_nodes:
        return gettext("It is next in line; a worker is about to take it.")
    return _busy(job, able) if num_nodes == 1 else _busy_together(job, alike)


def _other_device(job: Job) -> str:
    names = " / ".join(job.study.devices) if job.study else ""
    return gettext(
        "Its study keeps to %(device)s, on which its other runs were done, and no worker of the queue “%(queue)s” "
        "with such a device takes jobs now. To measure on another device, clone the study."
    ) % {"device": names, "queue": job.queue.name}


def _refusals(job: Job, worker: Worker) -> list[Finding]:
    return refusals(check(job.train_spec, worker.host_facts, worker.host_catalog))


def _has_room(job: Job, worker: Worker) -> bool:
    in_service = of_its_type(job, [device for device in worker.devices.all() if device.is_in_service])
    free = [device for device in in_service if device.attempt_id is None]
    return devices_needed(job.train_spec, worker.host_facts, free) is not None


def _most_alike(job: Job, workers: list[Worker]) -> list[Worker]:
    """The workers that could be nodes of the job together: of a job of one node, all of them."""
    spec, groups = job.train_spec, defaultdict(list)
    for worker in workers:
        groups[likeness(spec, worker.host_facts) if spec.num_nodes > 1 else ()].append(worker)
    return max(groups.values(), key=len)


def _too_few(queue: Queue, num_nodes: int, alike: list[Worker]) -> str:
    return gettext(
        "It asks for %(asked)s nodes that are alike. "
        "Online workers of the queue “%(queue)s” that can take part: %(hosts)s."
    ) % {"asked": num_nodes, "queue": queue.name, "hosts": ", ".join(worker.hostname for worker in alike)}


def _busy_together(job: Job, workers: list[Worker]) -> str:
    """What the job waits for on the hosts that have its devices first, of as many as it has nodes."""
    num_nodes = job.train_spec.num_nodes
    enough = _with_enough(job, workers)
    if len(enough) < num_nodes:
        return gettext("It is next in line, but too few hosts have enough devices in service.")
    first = sorted(enough, key=lambda lack: (lack.ready_in_s, lack.num_missing))[:num_nodes]
    return gettext("It is next in line and needs %(count)s hosts at once: %(parts)s.") % {
        "count": num_nodes,
        "parts": "; ".join(lack.in_short() for lack in first),
    }


def _with_enough(job: Job, workers: list[Worker]) -> list["_Lack"]:
    """What the job lacks on each of the workers that have enough devices in service."""
    attempts = {
        device.attempt.pk: device.attempt for each in workers for device in each.devices.all() if device.attempt
    }
    left = remaining_s(attempts.values(), measured_durations(), timezone.now())
    lacks = [_lack(job, worker, left) for worker in workers]
    return [lack for lack in lacks if len(lack.devices) >= lack.num_wanted]


def _busy(job: Job, workers: list[Worker]) -> str:
    """What the job lacks on the host that has it first, and which jobs there end when."""
    enough = _with_enough(job, workers)
    if not enough:
        return gettext("It is next in line, but %(host)s has too few devices in service.") % {
            "host": workers[0].hostname
        }
    return min(enough, key=lambda lack: (lack.ready_in_s, lack.num_missing)).in_words()


@dataclass(frozen=True)
class _Lack:
    """What a job lacks on one host: the devices in service of its kind there, and when each is free."""

    host: str
    devices: list[Device]
    num_wanted: int
    left: Mapping[int, float | None]  # seconds until attempts end, by their ids

    @property
    def num_missing(self) -> int:
        return self.num_wanted - sum(device.attempt_id is None for device in self.devices)

    @property
    def ready_in_s(self) -> float:
        return sorted(_free_in_s(device, self.left) for device in self.devices)[self.num_wanted - 1]

    def in_words(self) -> str:
        """Such as "2 GPUs with 80 GB of apex-01: 1 free, job 118 ends in about 6 min"."""
        num_free = self.num_wanted - self.num_missing
        parts = [gettext("%(count)s free") % {"count": num_free}] if self.num_wanted > 1 else []
        return gettext("It is next in line and needs %(devices)s of %(host)s: %(parts)s.") % {
            "devices": self._needed(),
            "host": self.host,
            "parts": ", ".join([*parts, *self._ends()]),
        }

    def in_short(self) -> str:
        """Such as "apex-01 is free" or "on apex-02 job 118 ends in about 6 min"."""
        if self.num_missing <= 0:
            return gettext("%(host)s is free") % {"host": self.host}
        return gettext("on %(host)s %(parts)s") % {"host": self.host, "parts": ", ".join(self._ends())}

    def _needed(self) -> str:
        if self.devices[0].kind == DeviceKind.CPU:
            return gettext("the CPU")
        memory = round(min(device.memory_bytes for device in self.devices) / 2**30)
        places = {"count": self.num_wanted, "memory": memory}
        return (
            ngettext("%(count)s GPU with %(memory)s GB", "%(count)s GPUs with %(memory)s GB", self.num_wanted) % places
        )

    def _ends(self) -> list[str]:
        """The jobs that have to end, those that end first."""
        sentences: dict[int, str] = {}
        held = [device for device in self.devices if device.attempt]
        for device in sorted(held, key=lambda each: _free_in_s(each, self.left))[: self.num_missing]:
            if device.attempt:
                sentences[device.attempt.pk] = _end(device.attempt.job_id, self.left.get(device.attempt.pk))
        return list(sentences.values())


def _lack(job: Job, worker: Worker, left: Mapping[int, float | None]) -> _Lack:
    spec = job.train_spec
    kind = resolve_device_kind(spec, worker.host_facts)
    in_service = of_its_type(job, [device for device in worker.devices.all() if device.is_in_service])
    devices = [device for device in in_service if device.kind == kind]
    return _Lack(worker.hostname, devices, num_wanted(spec, kind), left)


def _free_in_s(device: Device, left: Mapping[int, float | None]) -> float:
    if device.attempt_id is None:
        return 0.0
    remaining = left.get(device.attempt_id)
    return math.inf if remaining is None else remaining


def _end(job_id: int, left_s: float | None) -> str:
    if left_s is None:
        return gettext("job %(job)s runs") % {"job": job_id}
    return gettext("job %(job)s ends in about %(time)s") % {"job": job_id, "time": about(left_s)}


def about(seconds: float) -> str:
    """A span of time as roughly as it is known."""
    if seconds < 60:
        return gettext("a minute")
    if seconds < 90 * 60:
        return gettext("%(minutes)s min") % {"minutes": round(seconds / 60)}
    if seconds < 36 * 3600:
        return gettext("%(hours)s h") % {"hours": round(seconds / 3600)}
    return gettext("%(days)s days") % {"days": round(seconds / 86400)}
