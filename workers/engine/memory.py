"""Memory of this process and its GPUs: what it holds now, and its peak since the last reset."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from workers.engine.facts import read_cpu

_RESET_PEAK_RSS = "5"  # proc(5), /proc/pid/clear_refs


@dataclass(frozen=True)
class Peaks:
    """Peaks in bytes. The GPU's are what torch's allocator handed out and what it reserved; None on a CPU."""

    rss: int
    allocated: int | None
    reserved: int | None


def read_rss() -> int:
    """Resident memory of this process in bytes; loader workers are processes of their own and not in it."""
    return _read_status("VmRSS")


def memory_of(device: torch.device) -> int:
    """What the device has in all, in bytes."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    return read_cpu().memory_bytes


def reset_peaks(devices: Sequence[torch.device]) -> None:
    """Start measuring peaks from here."""
    Path("/proc/self/clear_refs").write_text(_RESET_PEAK_RSS)
    for gpu in _gpus(devices):
        torch.cuda.reset_peak_memory_stats(gpu)


def read_peaks(devices: Sequence[torch.device]) -> Peaks:
    """Peaks since the last reset, or since the process began; of several GPUs the fullest one's."""
    return Peaks(
        rss=_read_status("VmHWM"),
        allocated=max(map(torch.cuda.max_memory_allocated, _gpus(devices)), default=None),
        reserved=max(map(torch.cuda.max_memory_reserved, _gpus(devices)), default=None),
    )


def _gpus(devices: Sequence[torch.device]) -> list[torch.device]:
    return [device for device in devices if device.type == "cuda"]


def _read_status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(f"/proc/self/status has no {field}")
