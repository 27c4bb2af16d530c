"""The training loop: steps in windows, with no wait for the device inside one.

Losses come over once per window of about a quarter of a second. Wall time is read at a window's edges and
interpolated inside it. Windows follow each other without a gap, so that what the engine itself does between two of
them counts as training time too.
"""

import math
import time
from collections import deque
from collections.abc import Sequence
from statistics import median

import torch
from torch import Tensor

from jobs.contract.errors import Diverged
from jobs.contract.events import Points
from jobs.contract.spec import TrainSpec
from workers.engine.checkpoint import Checkpoint, Keeper
from workers.engine.devices import synchronize
from workers.engine.order import BatchOrder
from workers.engine.parallel import Exchange
from workers.engine.report import Report
from workers.engine.steady import Ground, why_not_steady
from workers.engine.step import Step
from workers.engine.timing import StepTimes, clock_for

WINDOW_S = 0.25
MAX_WINDOW_STEPS = 4096  # bounds the losses that wait on the device
MAX_WARMUP_STEPS = 10
NUM_FINAL_LOSSES = 10


class Loop:
    """Takes steps, reports their curve and keeps what the summary needs."""

    def __init__(
        self,
        take_step: Step,
        spec: TrainSpec,
        exchange: Exchange,
        report: Report,
        devices: Sequence[torch.device],
        order: BatchOrder,
        *,
        has_loss: bool = True,
        keeper: Keeper | None = None,
        resumed: Checkpoint | None = None,
    ) -> None:
        """Losses are on the first device; without `has_loss` they mean nothing, and are neither told nor summed up."""
        assert spec.num_steps is not None  # noqa: S101 - resolved long before
        self._take_step = take_step
        self._num_steps = spec.num_steps
        self._count_samples = order.count_samples
        self._exchange = exchange
        self._report = report
        self._device, self._devices = devices[0], devices
        self._has_loss = has_loss
        self._started_s = time.perf_counter()
        self._edge_s = self._started_s  # when the next window begins
        self._ended_s = self._started_s  # when the last one ended
        self._next_length = 1
        self._steady_windows: list[tuple[int, float]] = []  # steps, mean step time in ms
        self._sample_windows: list[tuple[int, float]] = []  # steps, mean time of a sample in ms
        self._steady_medians_ms: list[float] = []  # of single steps, one per steady window
        self._recent_grounds: deque[Ground] = deque(maxlen=3)  # at the edges of the last two steady windows
        self._clock = clock_for(self._device)
        self._step_times = StepTimes()
        self._num_done = resumed.step if resumed else 0
        self._final_losses: list[float] = list(resumed.final_losses) if resumed else []
        self._keeper = keeper

    @property
    def started_s(self) -> float:
        """The perf_counter reading from which wall times count: when the first step began, or will begin now."""
        return self._started_s

    @property
    def num_left(self) -> int:
        """Steps that are still to be taken."""
        return self._num_steps - self._num_done

    def run_first_step(self) -> None:
        """The first step by itself, with compilation and all else that happens once."""
        synchronize(self._device)
        self._started_s = self._edge_s = time.perf_counter()
        self._report.summary.first_step_s = self._run_window(1)

    def run_warmup(self, at_least: int = 0) -> None:
        """A few steps that are in the curve but not in the steady figures."""
        summary, seconds = self._report.summary, 0.0
        left = min(max(at_least, min(MAX_WARMUP_STEPS, self._num_steps // 5)), self.num_left)
        while left:  # a checkpoint may be due in between
            length = min(left, self._most_steps)
            seconds += self._run_window(length)
            left -= length
        summary.warmup_s = seconds - (summary.capture_s or 0.0)

    def run_steady(self) -> None:
        """All steps that are left, in windows whose step time is reported."""
        before = Ground.now(self._devices)
        self._recent_grounds.append(before)
        self._edge_s = time.perf_counter()  # what was prepared since the warm-up is nobody's step time
        try:
            self._run_steady_windows()
        finally:  # a run that ends early has these figures too
            self._report.summary.steady_s = sum(length * ms for length, ms in self._steady_windows) / 1e3
            self._sum_up_steadiness(before)

    def _run_steady_windows(self) -> None:
        while left := self.num_left:
            # A short last window would measure badly, so the one before takes its steps along.
            length = min(left if left < 2 * self._next_length else self._next_length, self._most_steps)
            num_samples_before = self._count_samples(self._num_done)
            window_ms = 1e3 * self._run_window(length)
            num_samples = self._count_samples(self._num_done) - num_samples_before
            step_time_ms = window_ms / length
            self._steady_windows.append((length, step_time_ms))
            self._sample_windows.append((length, window_ms / num_samples))
            times_ms = self._clock.read_ms()
            self._step_times.add(times_ms)
            self._steady_medians_ms.append(median(times_ms))
            self._recent_grounds.append(Ground.now(self._devices))
            self._emit([self._num_done], [self._ended_s], "step_time_ms", [step_time_ms])
            self._sum_up_speed()

    def _sum_up_speed(self) -> None:
        self._report.summary.steady_step_time_ms = weighted_median(self._steady_windows)
        self._report.summary.samples_per_s = 1e3 / weighted_median(self._sample_windows)

    def _sum_up_steadiness(self, before: Ground) -> None:
        summary = self._report.summary
        reason = why_not_steady(self._steady_medians_ms, before, self._recent_grounds[0], self._recent_grounds[-1])
        summary.is_steady, summary.not_steady_because = reason is None, reason
        if percentiles := self._step_times.percentiles():
            summary.step_time_p50_ms, summary.step_time_p90_ms, summary.step_time_p99_ms = percentiles

    def _run_window(self, length: int) -> float:
        losses = self._take_steps(length)
        synchronize(self._device)
        proposal = propose_length(length, time.perf_counter() - self._edge_s)
        values, self._next_length = self._exchange.collect(losses, proposal)
        begin_s, self._edge_s = self._edge_s, time.perf_counter()
        self._record(values, begin_s)
        self._ended_s = self._edge_s
        self._keep()
        return self._ended_s - begin_s

    @property
    def _most_steps(self) -> int:
        """The most steps that a window may have: it ends where a checkpoint is due."""
        return self._keeper.steps_until_next(self._num_done) if self._keeper else MAX_WINDOW_STEPS

    def _keep(self) -> None:
        """Save where it is time to; what that takes belongs to no window."""
        if self._keeper is None:
            return
        summary = self._report.summary
        summary.checkpoint_s = (summary.checkpoint_s or 0.0) + self._keeper.save_if_due(
            self._num_done, self._final_losses
        )
        self._edge_s = time.perf_counter()

    def _take_steps(self, length: int) -> list[Tensor]:
        take_step, mark = self._take_step, self._clock.begin(length)
        losses: list[Tensor] = []
        append = losses.append
        try:
            for _ in range(length):
                append(take_step())
                mark()
        finally:  # counted here only, so that an exception knows its step and a step pays nothing for it
            self._report.step = self._num_done + min(len(losses) + 1, length)
        return losses

    def _record(self, losses: list[float], begin_s: float) -> None:
        steps = range(self._num_done + 1, self._num_done + len(losses) + 1)
        seconds_per_step = (self._edge_s - begin_s) / len(losses)
        walls_s = [begin_s + seconds_per_step * count for count in range(1, len(losses) + 1)]
        bad = next((index for index, loss in enumerate(losses) if not math.isfinite(loss)), None)
        known = slice(None) if bad is None else slice(bad + 1)  # what follows a bad loss means nothing
        self._final_losses = [*self._final_losses, *losses[known]][-NUM_FINAL_LOSSES:]
        self._num_done += len(losses[known])
        self.sum_up_losses()
        if self._has_loss:
            self._emit(list(steps[known]), walls_s[known], "train_loss", losses[known])
        if bad is not None:
            self._report.step = steps[bad]
            raise Diverged(steps[bad])

    def sum_up_losses(self) -> None:
        """Bring the summary up to the steps that were taken, in this run and in the one that it goes on from."""
        summary = self._report.summary
        summary.num_steps = self._num_done
        summary.num_samples = self._count_samples(self._num_done)
        if self._has_loss:  # the mean over the last ten steps, or all if fewer
            summary.final_train_loss = sum(self._final_losses) / len(self._final_losses)
        apart_s = (summary.first_step_s or 0.0) + (summary.checkpoint_s or 0.0) + (summary.capture_s or 0.0)
        summary.train_s = self._edge_s - self._started_s - apart_s

    def _emit(self, steps: list[int], walls_s: list[float], series: str, values: list[float]) -> None:
        since_start_s = [wall_s - self._started_s for wall_s in walls_s]
        self._report.emit(Points(steps=steps, wall_s=since_start_s, series={series: values}))


def propose_length(length: int, seconds: float) -> int:
    """Steps for the next window, from how long a window of `length` steps took."""
    return max(1, min(MAX_WINDOW_STEPS, round(length * WINDOW_S / max(seconds, 1e-6))))


def weighted_median(windows: list[tuple[int, float]]) -> float:
    """The value of the middle step, where each of a window's steps counts with the window's value.

    So a short last window weighs as little as it is short. Windows are (steps, value), one at least.
    """
    middle = sum(length for length, _ in windows) / 2
    passed = 0
    ordered = sorted(windows, key=lambda window: window[1])
    for length, value in ordered:
        passed += length
        if passed >= middle:
            return value
    raise ValueError("there is no window to take a median of")
