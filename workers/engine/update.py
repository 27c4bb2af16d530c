"""What happens to the gradients of a step: unscale, clip, update the weights, move the learning rate, clear."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn, optim

from jobs.contract.spec import TrainSpec
from workers.engine.optimizers import build_optimizer, build_scheduler


class Update:
    """An optimizer with all that surrounds it. `scaler` and `scheduler` are None where the spec needs none."""

    def __init__(self, spec: TrainSpec, model: nn.Module, scaler: torch.amp.GradScaler | None) -> None:
        self.optimizer = build_optimizer(spec, model)
        self.scheduler = build_scheduler(spec, self.optimizer)
        self.scaler = scaler
        self._parameters = list(model.parameters())
        self._max_norm = spec.grad_clip_norm
        self._set_to_none = spec.zero_grad_set_to_none
        self._skipped = SkippedSteps(self.optimizer) if scaler else None

    @property
    def num_skipped_steps(self) -> int | None:
        """Steps whose gradients overflowed, so that the scaler left the weights alone; None without a scaler."""
        return self._skipped.count() if self._skipped else None

    def build_apply(self) -> Callable[[], None]:
        """Apply and clear the gradients that have been added up; without the schedule, which the host moves."""
        take_step = self._build_take_step()
        clear = self._build_clear()

        def apply() -> None:
            take_step()
            clear()

        return apply

    def _build_take_step(self) -> Callable[[], Any]:
        optimizer, scaler, skipped = self.optimizer, self.scaler, self._skipped
        clip = self._clip if self._max_norm is not None else None
        if scaler is None or skipped is None:
            return optimizer.step if clip is None else self._clip_and_step

        def scaled_step() -> None:
            if clip is not None:
                scaler.unscale_(optimizer)  # the norm is meant of the gradients themselves
                clip()
            skipped.num_asked += 1
            scaler.step(optimizer)
            scaler.update()

        return scaled_step

    def _clip_and_step(self) -> None:
        self._clip()
        self.optimizer.step()

    def _clip(self) -> None:
        assert self._max_norm is not None  # noqa: S101 - asked before
        nn.utils.clip_grad_norm_(self._parameters, self._max_norm)

    def _build_clear(self) -> Callable[[], None]:
        parameters, optimizer = self._parameters, self.optimizer
        if not self._set_to_none:
            return lambda: optimizer.zero_grad(set_to_none=False)

        def release() -> None:
            for parameter in parameters:
                parameter.grad = None

        return release


class SkippedSteps:
    """Counts the steps that a GradScaler did not let through, without waiting for the device.

    An ordinary optimizer is then not stepped at all. A fused one is, and finds in `found_inf`, which the scaler lends
    it for that step, that it must leave the weights alone.
    """

    def __init__(self, optimizer: optim.Optimizer) -> None:
        self.num_asked = 0
        self._num_taken = 0
        self._num_void: Tensor | float = 0.0
        optimizer.register_step_pre_hook(self._before)
        optimizer.register_step_post_hook(self._after)

    def count(self) -> int:
        """How many; reads from the device."""
        return self.num_asked - self._num_taken + round(float(self._num_void))

    def _before(self, optimizer: optim.Optimizer, _args: Any, _kwargs: Any) -> None:
        found_inf = getattr(optimizer, "found_inf", None)
        if found_inf is None:
            return
        if isinstance(self._num_void, Tensor):
            self._num_void += found_inf  # in place, so that a captured step counts at every replay
        else:
            self._num_void = found_inf.clone()

    def _after(self, _optimizer: optim.Optimizer, _args: Any, _kwargs: Any) -> None:
        self._num_taken += 1
