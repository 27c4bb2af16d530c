"""What the timed steps took: memory, energy and what may have spoiled them, seen on each rank and brought together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch

from jobs.contract.metrics import Summary
from workers.engine.memory import Peaks, read_peaks
from workers.engine.telemetry import Telemetry, name_spoilers, worst_of

Figure = TypeVar("Figure", int, float)


@dataclass(frozen=True)
class Resources:
    """One rank's figures. `worst` is what telemetry saw at its worst, by name; None where a figure is not to be had."""

    peaks: Peaks
    energy_j: float | None
    worst: dict[str, float]

    @classmethod
    def taken(cls, devices: Sequence[torch.device], telemetry: Telemetry) -> "Resources":
        """What was taken up to now; the steady part ends with this."""
        energy_j, samples = telemetry.end_steady()
        return cls(read_peaks(devices), energy_j, worst_of(samples))


def store_resources(summary: Summary, ranks: Sequence[Resources]) -> None:
    """Process memory and energy are sums over ranks; of GPUs' memory the fullest one counts, which is the limit."""
    summary.peak_rss_bytes = sum(rank.peaks.rss for rank in ranks)
    summary.peak_allocated_bytes = _of_all(max, [rank.peaks.allocated for rank in ranks])
    summary.peak_reserved_bytes = _of_all(max, [rank.peaks.reserved for rank in ranks])
    summary.energy_j = _of_all(sum, [rank.energy_j for rank in ranks])
    used_bytes = _of_all(max, [rank.worst.get("gpu_memory_used_bytes") for rank in ranks])
    summary.peak_device_used_bytes = None if used_bytes is None else round(used_bytes)
    summary.spoiled_by = name_spoilers([rank.worst for rank in ranks], summary.not_steady_because)


def _of_all(combine: Callable[[list[Figure]], Figure], figures: list[Figure | None]) -> Figure | None:
    """None where any rank has no figure: the others' alone would say too little."""
    known = [figure for figure in figures if figure is not None]
    return combine(known) if len(known) == len(figures) else None
