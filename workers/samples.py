"""What this host's devices are busy with now: GPUs as NVML tells it, the CPU as the kernel does. No torch, no CUDA."""

from collections.abc import Iterable
from functools import cache

import psutil

from jobs.contract.facts import DeviceSample
from jobs.models import Device
from workers.engine.nvml import Gpu, NvmlMissing


def sample_devices(devices: Iterable[Device]) -> dict[int, DeviceSample]:
    """A sample of each device by its id; devices that tell nothing are left out."""
    samples = {device.pk: _sample_cpu() if device.kind == "cpu" else _sample_gpu(device.uuid) for device in devices}
    return {pk: sample for pk, sample in samples.items() if sample is not None}


def _sample_cpu() -> DeviceSample:
    """All cores since the call before, and the host's memory; a temperature where a sensor tells one."""
    memory = psutil.virtual_memory()
    return DeviceSample(
        utilization_percent=psutil.cpu_percent(),
        memory_used_bytes=memory.total - memory.available,
        temperature_c=_cpu_temperature_c(),
    )


def _cpu_temperature_c() -> float | None:
    try:
        sensors = psutil.sensors_temperatures()
    except (AttributeError, OSError):
        return None
    known = [entry.current for name in ("coretemp", "k10temp", "cpu_thermal") for entry in sensors.get(name, [])]
    return max(known, default=None)


def _sample_gpu(uuid: str) -> DeviceSample | None:
    gpu = _open_gpu(uuid)
    if gpu is None:
        return None
    told = gpu.read()
    return DeviceSample(
        utilization_percent=told.get("gpu_utilization_percent"),
        memory_used_bytes=_whole(told.get("gpu_memory_used_bytes")),
        temperature_c=told.get("gpu_temperature_c"),
        power_w=told.get("gpu_power_w"),
    )


@cache
def _open_gpu(uuid: str) -> Gpu | None:
    try:
        return Gpu(uuid) if uuid else None
    except NvmlMissing:
        return None


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
