"""Who uses this host's GPUs besides Pitwall, as NVML tells it. The Celery worker may ask: NVML is not CUDA."""

import time
from collections.abc import Iterable
from functools import cache

import psutil
import pynvml

from jobs.models import Device

_SETTLE_S = 1.0  # the driver may list a process for a moment after its end
_POLL_S = 0.05


def look_at_gpus(devices: Iterable[Device]) -> dict[int, str]:
    """By the ids of those of the devices that others use: whose processes are on them.

    The devices are ones that no attempt has leased, so that every process on them is somebody else's. One that has
    just ended is given a second to go.
    """
    devices = list(devices)
    deadline = time.monotonic() + _SETTLE_S
    while (used := _used(devices)) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    return used


def _used(devices: list[Device]) -> dict[int, str]:
    named = {device.pk: _in_words(list_processes(device.uuid)) for device in devices if device.uuid}
    return {pk: words for pk, words in named.items() if words}


def list_processes(uuid: str) -> list[int]:
    """The ids of the processes that compute on a GPU; none where the driver does not say."""
    if not _has_driver():
        return []
    try:
        handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
        return [process.pid for process in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)]
    except pynvml.NVMLError:
        return []


@cache
def _has_driver() -> bool:
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return False
    return True


def _in_words(pids: Iterable[int]) -> str:
    return ", ".join(_describe(pid) for pid in pids)[:200]


def _describe(pid: int) -> str:
    """Name, id and owner of a process; in a container it may be known by its id alone."""
    try:
        process = psutil.Process(pid)
        return f"{process.name()} ({pid}) of {process.username()}"
    except psutil.Error:
        return f"process {pid}"
