"""`task: inference`: a step is one forward pass, without gradients, optimizer or exchange between ranks."""

from collections.abc import Iterator

import torch
from torch import Tensor

from workers.engine.data.dataset import Batch
from workers.engine.precision import Forward
from workers.engine.step import LossFunction, Step


def build_forward_only(forward: Forward, device: torch.device) -> LossFunction:
    """The forward pass of a batch. It returns a zero: what the loop takes for a loss, and nobody is shown."""
    nothing = torch.zeros((), device=device)

    def forward_only(batch: Batch) -> Tensor:
        inputs, _targets = batch
        forward(inputs)
        return nothing

    return forward_only


def build_forward_step(forward_only: LossFunction, batches: Iterator[Batch]) -> Step:
    """One micro-batch through the model."""

    def step() -> Tensor:
        return forward_only(next(batches))

    return step
