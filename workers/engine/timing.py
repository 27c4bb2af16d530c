"""How long single steps took, without waiting for the device inside a window.

On a CPU a step's end is a reading of the host's clock, about 50 ns each. On a GPU it is an event on the stream, taken
from a pool that is filled before, and read once the window has ended.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Protocol

import numpy as np
import torch

MAX_KEPT_STEPS = 100_000  # percentiles are over the most recent ones; bounds the memory of an endless run


class StepClock(Protocol):
    """Marks the ends of a window's steps."""

    def begin(self, num_steps: int) -> Callable[[], None]:
        """A window of `num_steps` begins now; call what is returned after each step."""

    def read_ms(self) -> list[float]:
        """The window's step times in ms; call it after the device was waited for."""


class HostClock:
    """Step times by the host's clock."""

    def __init__(self) -> None:
        self._edges_s: list[float] = []

    def begin(self, num_steps: int) -> Callable[[], None]:
        """See `StepClock`."""
        now = time.perf_counter
        edges_s = self._edges_s = [now()]
        append = edges_s.append
        return lambda: append(now())

    def read_ms(self) -> list[float]:
        """See `StepClock`."""
        return [1e3 * (end - begin) for begin, end in pairwise(self._edges_s)]


class CudaClock:
    """Step times between events on the current stream: the device's time, gaps between kernels included."""

    def __init__(self) -> None:
        self._pool: list[torch.cuda.Event] = []
        self._num_marks = 0

    def begin(self, num_steps: int) -> Callable[[], None]:
        """See `StepClock`."""
        while len(self._pool) <= num_steps:
            self._pool.append(torch.cuda.Event(enable_timing=True))  # type: ignore[no-untyped-call]
        waiting = iter(self._pool)
        self._num_marks = 0

        def mark() -> None:
            next(waiting).record()
            self._num_marks += 1

        mark()
        return mark

    def read_ms(self) -> list[float]:
        """See `StepClock`."""
        return [begin.elapsed_time(end) for begin, end in pairwise(self._pool[: self._num_marks])]


def clock_for(device: torch.device) -> StepClock:
    """The clock that suits the device."""
    return CudaClock() if device.type == "cuda" else HostClock()


class StepTimes:
    """The most recent step times, for percentiles."""

    def __init__(self) -> None:
        self._kept_ms: deque[float] = deque(maxlen=MAX_KEPT_STEPS)

    def add(self, times_ms: Iterable[float]) -> None:
        """Keep these too."""
        self._kept_ms.extend(times_ms)

    def percentiles(self) -> tuple[float, float, float] | None:
        """p50, p90 and p99 in ms, interpolated; None before the first step."""
        if not self._kept_ms:
            return None
        p50, p90, p99 = np.percentile(np.fromiter(self._kept_ms, np.float64), (50, 90, 99)).tolist()
        return p50, p90, p99
