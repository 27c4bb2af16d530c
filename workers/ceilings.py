"""What this host's devices really reach: measured once for each version of torch, while the host has nothing to do.

In a short engine process, so that the worker never imports torch. A job that is claimed meanwhile ends it at once; it
is tried again once the host is idle.
"""

import logging
import subprocess
import threading
from pathlib import Path

from django.conf import settings
from pydantic import BaseModel, ValidationError

from jobs.contract.facts import Ceilings, DeviceFacts, HostFacts
from jobs.models import Worker
from jobs.selectors.turns import claimable_jobs
from jobs.services.workers import store_ceilings
from jobs.timings import timings
from workers.engine_process import engine_command, environment_without_secrets
from workers.identity import host_name

logger = logging.getLogger(__name__)

_DONE_S = 3600.0


class _Kept(BaseModel):
    """The file in which a host's ceilings outlive its worker."""

    torch_version: str
    ceilings: dict[str, Ceilings]  # by device


class CeilingWatch:
    """Sees to it that the ceilings of a host's devices are known."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    @property
    def is_measuring(self) -> bool:
        """Whether a process of ours keeps the devices busy now."""
        return self._process is not None

    def look(self, worker_id: int) -> float:
        """Store the ceilings if they are known or can be measured now; returns the seconds until the next look."""
        facts = Worker.objects.get(pk=worker_id).host_facts
        if all(device.ceilings for device in facts.devices):
            return _DONE_S
        known = read_kept(facts)
        if known is None:
            known = self._measure(worker_id)
            if known is None:
                return timings().relay_s
            keep(known)
        store_ceilings(worker_id, known)
        return _DONE_S

    def give_way(self) -> None:
        """End a measurement that is going on: the devices are wanted."""
        with self._lock:
            if self._process is not None:
                self._process.kill()
                self._process.wait()

    def _measure(self, worker_id: int) -> HostFacts | None:
        """The host's facts with ceilings; None where it has other things to do, or the engine cannot."""
        if not is_idle(worker_id):
            return None
        with self._lock:
            process = self._process = subprocess.Popen(
                [*engine_command(), "describe", "--ceilings"],
                env=environment_without_secrets(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        try:
            if not is_idle(worker_id):  # what was claimed before the process was there could not end it
                self.give_way()
            output, _nothing = process.communicate()
        finally:
            self.give_way()
            self._process = None
        return _read(output) if process.returncode == 0 else None


def is_idle(worker_id: int) -> bool:
    """Whether nothing runs on the host's devices, or is about to."""
    worker = Worker.objects.get(pk=worker_id)
    in_use = worker.devices.filter(is_present=True).exclude(attempt=None, foreign_use="").exists()
    return not in_use and not claimable_jobs().filter(queue__workers=worker_id).exists()


def _read(output: bytes) -> HostFacts | None:
    try:
        described = _Described.model_validate_json(output)
    except ValidationError as error:
        logger.warning("the engine's ceilings cannot be read: %s", error)
        return None
    return described.facts


class _Described(BaseModel):
    """What is wanted of the engine's description of itself."""

    facts: HostFacts


def keep(facts: HostFacts) -> None:
    """Write the ceilings down for later workers of this host."""
    ceilings = {_name_of(device): device.ceilings for device in facts.devices if device.ceilings}
    path = _path()
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(_Kept(torch_version=facts.torch_version, ceilings=ceilings).model_dump_json())
    part.rename(path)


def read_kept(facts: HostFacts) -> HostFacts | None:
    """The facts with the ceilings that were written down; None where one is missing, or another torch measured them."""
    try:
        kept = _Kept.model_validate_json(_path().read_bytes())
    except (OSError, ValidationError):
        return None
    names = {_name_of(device) for device in facts.devices}
    if kept.torch_version != facts.torch_version or not names <= kept.ceilings.keys():
        return None
    devices = [device.model_copy(update={"ceilings": kept.ceilings[_name_of(device)]}) for device in facts.devices]
    return facts.model_copy(update={"devices": devices})


def _name_of(device: DeviceFacts) -> str:
    return f"{device.kind}:{device.index} {device.uuid or device.name}"


def _path() -> Path:
    return Path(settings.VAR) / "ceilings" / f"{host_name()}.json"
