"""One optimizer step as one function, put together once: the loop pays for no choice that was made before it.

A step returns its loss as a tensor on the device, so that nothing waits for the device inside the loop.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat

import torch
from torch import Tensor, nn

from workers.engine.data.dataset import Batch
from workers.engine.losses import MeanLoss
from workers.engine.parallel import without_reduction
from workers.engine.precision import Forward
from workers.engine.update import Update

Step = Callable[[], Tensor]
LossFunction = Callable[[Batch], Tensor]
Weights = Iterator[Sequence[float]]  # of each step's micro-batches


def build_loss(forward: Forward, mean_loss: MeanLoss) -> LossFunction:
    """The loss of a batch."""

    def compute_loss(batch: Batch) -> Tensor:
        inputs, targets = batch
        return mean_loss(forward(inputs), targets)

    return compute_loss


def build_step(
    model: nn.Module,
    compute_loss: LossFunction,
    update: Update,
    batches: Iterator[Batch],
    grad_accum_steps: int,
    weights: Weights | None = None,
) -> Step:
    """Forward, backward and update over one global batch's part of this rank; `model` as it was wrapped."""
    compute_gradients = build_gradients(model, compute_loss, update.scaler, batches, grad_accum_steps, weights)
    apply_gradients = update.build_apply()
    if update.scheduler is None:

        def step() -> Tensor:
            loss = compute_gradients()
            apply_gradients()
            return loss

        return step
    move_learning_rate = update.scheduler.step

    def scheduled_step() -> Tensor:
        loss = compute_gradients()
        apply_gradients()
        move_learning_rate()
        return loss

    return scheduled_step


def build_gradients(
    model: nn.Module,
    compute_loss: LossFunction,
    scaler: torch.amp.GradScaler | None,
    batches: Iterator[Batch],
    grad_accum_steps: int,
    weights: Weights | None = None,
) -> Step:
    """Forward and backward over all micro-batches of a step; returns the mean loss, not scaled.

    Without `weights` every step has `grad_accum_steps` micro-batches of one size.
    """
    backward = _plain_backward if scaler is None else lambda loss: _plain_backward(scaler.scale(loss))
    if grad_accum_steps > 1 or weights is not None:
        equal = repeat([1 / grad_accum_steps] * grad_accum_steps)
        return _accumulation(model, compute_loss, backward, batches, weights or equal)

    def compute_gradients() -> Tensor:
        loss = compute_loss(next(batches))
        backward(loss)
        return loss.detach()

    return compute_gradients


def _plain_backward(loss: Tensor) -> None:
    loss.backward()  # type: ignore[no-untyped-call]


def _accumulation(
    model: nn.Module,
    compute_loss: LossFunction,
    backward: Callable[[Tensor], None],
    batches: Iterator[Batch],
    weights: Weights,
) -> Step:
    """The weighted means of micro-batches add up to the global batch's mean."""

    def accumulate(shares: Sequence[float]) -> Tensor:
        total: Tensor | None = None
        for share in shares:
            loss = compute_loss(next(batches)) * share
            backward(loss)
            total = loss.detach() if total is None else total + loss.detach()
        assert total is not None  # noqa: S101 - one micro-batch at least
        return total

    keep_local = without_reduction(model)
    if keep_local is None:
        return lambda: accumulate(next(weights))

    def accumulate_then_reduce() -> Tensor:
        *early, last = next(weights)
        if not early:
            return accumulate([last])
        with keep_local():  # gradients travel once a step, with the last micro-batch
            total = accumulate(early)
        return total + accumulate([last])

    return accumulate_then_reduce
