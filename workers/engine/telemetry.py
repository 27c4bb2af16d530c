"""Once a second, off the training thread: what the host and the GPU are busy with while steps are timed."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import torch

from jobs.contract.events import Points, Warned
from jobs.contract.findings import Finding, Severity
from jobs.contract.messages import gettext_noop as _
from workers.engine.memory import read_rss
from workers.engine.nvml import THROTTLE_REASONS, Gpu, Gpus, NvmlMissing, name_harmful_reasons
from workers.engine.report import Report

INTERVAL_S = 1.0
PREFIX = "telemetry."

Read = Callable[[], dict[str, float]]


class HostReader:
    """The host's load and this process's share; loader workers are processes of their own."""

    def __init__(self) -> None:
        self._before = _Times.now()

    def read(self) -> dict[str, float]:
        """Since the last reading: host CPU 0 to 100, process CPU 100 per busy core. Load average of the last minute."""
        before, now = self._before, _Times.now()
        self._before = now
        return {
            "cpu_percent": 100 * (now.host_busy - before.host_busy) / max(now.host_all - before.host_all, 1),
            "process_cpu_percent": 100 * (now.process_s - before.process_s) / max(now.wall_s - before.wall_s, 1e-3),
            "process_rss_bytes": read_rss(),
            "load_average": os.getloadavg()[0],
        }


class _Times(NamedTuple):
    """What the kernel counts: the host's processors in ticks, this process's in seconds."""

    host_busy: int
    host_all: int
    process_s: float
    wall_s: float

    @classmethod
    def now(cls) -> "_Times":
        # proc(5): user, nice, system, idle, iowait, irq, softirq, steal; what follows is in user already.
        ticks = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        idle = ticks[3] + ticks[4]
        user_s, system_s, *_children = os.times()
        return cls(sum(ticks) - idle, sum(ticks), user_s + system_s, time.monotonic())


class Telemetry:
    """Samples while the block runs and reports points; keeps what may have spoiled the steady part."""

    def __init__(self, report: Report, gpus: Gpus | None, began_s: float, interval_s: float = INTERVAL_S) -> None:
        self._report = report
        self._gpus = gpus
        self._began_s = began_s
        self._interval_s = interval_s
        self._readers: list[Read] = [HostReader().read, *([gpus.read] if gpus else [])]
        self._watch: list[dict[str, float]] | None = None  # samples of the steady part, once it has begun
        self._energy_j: float | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample_until_end, name="telemetry", daemon=True)

    def __enter__(self) -> "Telemetry":
        self._thread.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def begin_steady(self) -> None:
        """The steady part begins."""
        self._watch = [self._read_spoilers()]
        self._energy_j = self._gpus.read_energy_j() if self._gpus else None

    def end_steady(self) -> tuple[float | None, list[dict[str, float]]]:
        """The steady part has ended: joules that these GPUs took meanwhile, and the samples of that time."""
        samples = [*(self._watch or []), self._read_spoilers()]
        self._watch = None
        after_j = self._gpus.read_energy_j() if self._gpus else None
        spent_j = None if after_j is None or self._energy_j is None else after_j - self._energy_j
        return spent_j, samples

    def _read_spoilers(self) -> dict[str, float]:
        """What is asked at the edges too, because a steady part may be shorter than an interval."""
        return {"load_average": os.getloadavg()[0]} | (self._gpus.read() if self._gpus else {})

    def _sample_until_end(self) -> None:
        while not self._ended.wait(self._interval_s):
            sample = {name: value for read in self._readers for name, value in read().items()}
            if (watch := self._watch) is not None:
                watch.append(sample)
            try:
                self._report.emit(self._as_points(sample))
            except OSError:  # nobody listens any more; the training thread finds that out by itself
                return

    def _as_points(self, sample: dict[str, float]) -> Points:
        return Points(
            steps=[self._report.step or 0],
            wall_s=[time.perf_counter() - self._began_s],
            series={f"{PREFIX}{name}": [float(value)] for name, value in sample.items()},
        )


def open_gpus(devices: Sequence[torch.device], report: Report) -> Gpus | None:
    """This process's GPUs in NVML; where that is missing a warning says so. None for a CPU."""
    if devices[0].type != "cuda":
        return None
    try:
        return Gpus([Gpu(f"GPU-{torch.cuda.get_device_properties(device).uuid}") for device in devices])
    except NvmlMissing as error:
        message, params = _("The GPU's power, clocks and use were not recorded: %(reason)s."), {"reason": str(error)}
        finding = Finding(
            code="no_gpu_telemetry", field="device", severity=Severity.WARN, message=message, params=params
        )
        report.emit(Warned(finding=finding))
        return None


def worst_of(samples: Iterable[dict[str, float]]) -> dict[str, float]:
    """One sample with the most of everything that was seen; of throttle reasons all."""
    worst: dict[str, float] = {}
    for sample in samples:
        for name, value in sample.items():
            seen = worst.get(name, 0.0)
            worst[name] = float(round(seen) | round(value)) if name == THROTTLE_REASONS else max(seen, value)
    return worst


def name_spoilers(samples: Iterable[dict[str, float]], not_steady_because: str | None) -> list[str]:
    """What may have spoiled the steady part, a sentence each; empty where nothing was seen."""
    worst = worst_of(samples)
    spoilers = []
    # The load is of the whole host, so its cores count, not those few that this process may be held to.
    if (load := worst.get("load_average", 0.0)) > (cores := os.cpu_count() or 1):
        spoilers.append(f"The host's load average of {load:.1f} was above its {cores} cores.")
    if foreign := round(worst.get("gpu_foreign_processes", 0.0)):
        spoilers.append(f"Other processes were computing on the GPU ({foreign}).")
    if reasons := name_harmful_reasons(round(worst.get(THROTTLE_REASONS, 0.0))):
        spoilers.append(f"The GPU's clocks were held back: {', '.join(reasons)}.")
    if not_steady_because:
        spoilers.append(f"The step time was not steady. {not_steady_because}")
    return spoilers
