"""The parts of a step, timed apart in a few extra steps after everything else was measured.

Each part ends with a wait for the device, so the parts do not overlap here as they do in the timed steps: they say
where time goes, and their sum may exceed the step time. The extra steps come last and change no result.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from statistics import median
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, optim

from jobs.contract.metrics import Summary
from workers.engine.batches import LoadedBatches
from workers.engine.data.dataset import Batch
from workers.engine.devices import synchronize
from workers.engine.step import LossFunction, Step

DATA_WAIT, HOST_TO_DEVICE = "data_wait", "host_to_device"
FORWARD, BACKWARD, OPTIMIZER = "forward", "backward", "optimizer"
MakeStep = Callable[[LossFunction, Iterator[Batch]], Step]


class PhaseClock:
    """Attributes all time to one part at a time."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._phase = DATA_WAIT
        self._since_s = 0.0
        self.times_ms: dict[str, float] = {}

    def begin(self) -> None:
        """A step begins."""
        self.times_ms = defaultdict(float)
        synchronize(self._device)
        self._phase, self._since_s = DATA_WAIT, time.perf_counter()

    def switch(self, phase: str) -> None:
        """The current part ends here, and `phase` begins."""
        synchronize(self._device)
        now = time.perf_counter()
        self.times_ms[self._phase] += 1e3 * (now - self._since_s)
        self._phase, self._since_s = phase, now


def measure_phases(
    make_step: MakeStep,
    compute_loss: LossFunction,
    batches: Iterator[Batch],
    optimizer: optim.Optimizer | None,
    device: torch.device,
    num_steps: int,
) -> dict[str, float]:
    """Median ms per step of each part; host_to_device only where batches come from the host.

    backward holds whatever is done with gradients before the optimizer's own step: reduction, unscaling, clipping.
    """
    clock = PhaseClock(device)
    step = make_step(_timed_loss(compute_loss, clock), _timed_batches(batches, clock))
    hook = optimizer.register_step_pre_hook(_switch_to_optimizer(clock)) if optimizer else None
    times_ms = []
    try:
        for _ in range(num_steps):
            clock.begin()
            step()
            clock.switch(DATA_WAIT)
            times_ms.append(clock.times_ms)
    finally:
        if hook is not None:
            hook.remove()
    phases = [phase for phase in times_ms[0] if optimizer or phase != BACKWARD]  # inference goes forward only
    return {phase: median(one[phase] for one in times_ms) for phase in phases}


def _timed_loss(compute_loss: LossFunction, clock: PhaseClock) -> LossFunction:
    def timed(batch: Batch) -> Tensor:
        clock.switch(FORWARD)
        loss = compute_loss(batch)
        clock.switch(BACKWARD)
        return loss

    return timed


def _timed_batches(batches: Iterator[Batch], clock: PhaseClock) -> Iterator[Batch]:
    if not isinstance(batches, LoadedBatches):
        while True:
            clock.switch(DATA_WAIT)
            yield next(batches)
    while True:
        clock.switch(DATA_WAIT)
        batch = next(batches.on_host)
        clock.switch(HOST_TO_DEVICE)
        yield batches.transfer(batch)


def _switch_to_optimizer(clock: PhaseClock) -> Callable[..., None]:
    def switch(_optimizer: optim.Optimizer, _args: Any, _kwargs: Any) -> None:
        clock.switch(OPTIMIZER)

    return switch


def measure_exposed_communication(
    step: Step, without_communication: Callable[[], AbstractContextManager[Any]], device: torch.device, num_steps: int
) -> float:
    """Ms per step that ranks wait for each other: the step's time less its time where it sends nothing.

    Medians of steps that alternate. The ranks begin each one together, or a slow rank's lag from the step before would
    be counted too. Noise can make it negative where nothing is exposed. The ranks' weights differ afterwards.
    """
    times_ms: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(num_steps):
        for sends in (True, False):
            dist.barrier()
            synchronize(device)
            began_s = time.perf_counter()
            with nullcontext() if sends else without_communication():
                step()
            synchronize(device)
            times_ms[sends].append(1e3 * (time.perf_counter() - began_s))
    return median(times_ms[True]) - median(times_ms[False])


def store_phases(summary: Summary, phases_ms: dict[str, float]) -> None:
    """Put the parts into the summary's fields."""
    summary.phase_data_wait_ms = phases_ms.get(DATA_WAIT)
    summary.phase_host_to_device_ms = phases_ms.get(HOST_TO_DEVICE)
    summary.phase_forward_ms = phases_ms.get(FORWARD)
    summary.phase_backward_ms = phases_ms.get(BACKWARD)
    summary.phase_optimizer_ms = phases_ms.get(OPTIMIZER)
