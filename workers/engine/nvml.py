"""One GPU as NVML sees it, which is what nvidia-smi shows: its use, memory, power, clocks, and who else is on it.

nvidia-ml-py is an optional package and its answers are optional too: what a GPU does not support is left out.
"""

import os
from collections.abc import Callable, Sequence
from functools import reduce
from importlib import import_module
from operator import or_
from statistics import fmean
from typing import Any

# Throttle reasons that slow a run although it did nothing unusual; a power cap at full load is normal and not here.
# Bits of nvmlClocksEventReasons.
_HARMFUL_REASONS = {
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
THROTTLE_REASONS = "gpu_throttle_reasons"


class NvmlMissing(Exception):
    """NVML cannot be asked here; the text says why."""


class Gpu:
    """One GPU by its UUID (`GPU-...`). Raises `NvmlMissing` where NVML or the GPU is not to be had."""

    def __init__(self, uuid: str) -> None:
        try:
            self._nvml: Any = import_module("pynvml")
        except ImportError as error:
            raise NvmlMissing("nvidia-ml-py is not installed") from error
        try:
            self._nvml.nvmlInit()
            self._handle = self._nvml.nvmlDeviceGetHandleByUUID(uuid)
        except self._nvml.NVMLError as error:
            raise NvmlMissing(str(error)) from error

    def read(self) -> dict[str, float]:
        """Everything that the GPU answers now. Its utilization is the time with any kernel, not efficiency."""
        nvml, handle = self._nvml, self._handle
        questions: dict[str, Callable[[], float]] = {
            "gpu_utilization_percent": lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu,
            "gpu_memory_used_bytes": lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used,
            "gpu_power_w": lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1e3,
            "gpu_temperature_c": lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
            "gpu_sm_clock_mhz": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
            "gpu_memory_clock_mhz": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
            THROTTLE_REASONS: lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle),
            "gpu_foreign_processes": self._count_foreign_processes,
        }
        answers = ((name, self._ask(question)) for name, question in questions.items())
        return {name: float(answer) for name, answer in answers if answer is not None}

    def read_energy_j(self) -> float | None:
        """Joules since the driver was loaded (Volta and later); None where the GPU does not count them."""
        millijoules = self._ask(lambda: self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle))
        return None if millijoules is None else millijoules / 1e3

    def _ask(self, question: Callable[[], float]) -> float | None:
        try:
            return question()
        except self._nvml.NVMLError:
            return None

    def _count_foreign_processes(self) -> int:
        """Processes that compute here and are not this one, the only one of its run on this GPU.

        In a container NVML may name processes by the host's ids; then one of them is this process all the same.
        """
        pids = {process.pid for process in self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle)}
        return len(pids - {os.getpid()}) if os.getpid() in pids else max(0, len(pids) - 1)


def _any_bit(masks: Sequence[float]) -> float:
    return float(reduce(or_, map(round, masks)))


# How several GPUs' answers become one: what the run takes is added up, and what limits it is the worst one's.
_OF_SEVERAL: dict[str, Callable[[Sequence[float]], float]] = {
    "gpu_utilization_percent": fmean,
    "gpu_memory_used_bytes": max,
    "gpu_power_w": sum,
    "gpu_temperature_c": max,
    "gpu_sm_clock_mhz": min,
    "gpu_memory_clock_mhz": min,
    THROTTLE_REASONS: _any_bit,
    "gpu_foreign_processes": sum,
}


class Gpus:
    """The GPUs of one process, one but for data_parallel, as if they were one."""

    def __init__(self, gpus: Sequence[Gpu]) -> None:
        self._gpus = gpus

    def read(self) -> dict[str, float]:
        """What all of them answer."""
        samples = [gpu.read() for gpu in self._gpus]
        answered = [name for name in _OF_SEVERAL if all(name in sample for sample in samples)]
        return {name: _OF_SEVERAL[name]([sample[name] for sample in samples]) for name in answered}

    def read_energy_j(self) -> float | None:
        """See `Gpu`; the sum, None where one of them does not count."""
        joules = [gpu.read_energy_j() for gpu in self._gpus]
        known = [energy_j for energy_j in joules if energy_j is not None]
        return sum(known) if len(known) == len(joules) else None


def name_harmful_reasons(mask: int) -> list[str]:
    """The throttle reasons in a bit mask that spoil a measurement, in words."""
    return [name for bit, name in _HARMFUL_REASONS.items() if mask & bit]
