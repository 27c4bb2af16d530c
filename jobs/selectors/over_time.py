"""What memory and devices did while runs trained: their sampled series, laid over each other by wall time."""

from collections.abc import Sequence
from dataclasses import replace

from jobs.models import Job
from jobs.selectors.compared import known_series
from jobs.selectors.overlay import Axis, Overlay, View, overlay
from jobs.smoothing import Smoothing
from jobs.thinning import MIN_POINTS

# Each kind is a panel, each of its series a row of it.
SERIES_OF = {
    "memory": ("telemetry.gpu_memory_used_bytes", "telemetry.process_rss_bytes"),
    "devices": (
        "telemetry.gpu_utilization_percent",
        "telemetry.gpu_power_w",
        "telemetry.gpu_temperature_c",
        "telemetry.gpu_sm_clock_mhz",
        "telemetry.process_cpu_percent",
        "telemetry.cpu_percent",
    ),
}

# Points that all rows of a panel share, and most of one line.
_POINTS_OF_A_PANEL = 30_000
_MOST_POINTS = 1000


def over_time(jobs: Sequence[Job], view: View) -> dict[str, list[Overlay]]:
    """By kind, an overlay for each series that some run recorded; `view` gives groups, legend and range in seconds."""
    known = set(known_series(jobs))
    return {kind: _rows(jobs, view, [name for name in names if name in known]) for kind, names in SERIES_OF.items()}


def _rows(jobs: Sequence[Job], view: View, names: Sequence[str]) -> list[Overlay]:
    most = _POINTS_OF_A_PANEL // max(1, len(jobs) * len(names))
    sampled = replace(
        view, x=Axis.WALL, smoothing=Smoothing.NONE, amount=0.0, max_points=max(MIN_POINTS, min(_MOST_POINTS, most))
    )
    return [overlay(jobs, replace(sampled, series=name)) for name in names]
