"""The loss of a batch: which function it is follows from what the data set asks to predict."""

from collections.abc import Callable

from torch import Tensor
from torch.nn import functional

from jobs.contract.catalog import Target

MeanLoss = Callable[[Tensor, Tensor], Tensor]  # outputs and targets of a batch -> a scalar


def loss_for(target: Target) -> MeanLoss:
    """Cross-entropy for classes and tokens, mean squared error for values."""
    return mean_squared_error if target is Target.VALUE else cross_entropy


def cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """The mean over samples and, for sequences, over positions; outputs (..., classes), targets (...)."""
    if outputs.dim() > 2:
        outputs, targets = outputs.flatten(0, -2), targets.flatten()
    return functional.cross_entropy(outputs, targets)


def mean_squared_error(outputs: Tensor, targets: Tensor) -> Tensor:
    """The mean over samples; outputs (N, 1), targets (N,).

    The shapes are made equal first: (N, 1) against (N,) would be spread to (N, N) and give a loss of nothing.
    """
    return functional.mse_loss(outputs.squeeze(-1), targets)
