"""The loss and accuracy on the evaluation split, weighted by samples; ranks share the samples out."""

import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.distributed.fsdp import FSDPModule

from jobs.contract.catalog import Target
from workers.engine.data.dataset import Dataset
from workers.engine.fsdp import forget_forward
from workers.engine.losses import loss_for
from workers.engine.parallel import Exchange, Rank
from workers.engine.precision import Forward

_STAND_IN = torch.zeros(1, dtype=torch.long)  # goes forward with the others where a rank has no sample, and counts not


@dataclass(frozen=True)
class Evaluation:
    """Means over the whole evaluation split; accuracy (0 to 1) is None where no class is predicted."""

    loss: float
    accuracy: float | None


def evaluate(
    model: nn.Module,
    dataset: Dataset,
    forward: Forward,
    device: torch.device,
    rank: Rank,
    exchange: Exchange,
    batch_size: int,
) -> Evaluation:
    """Evaluate the model itself; `forward` goes through it, neither wrapped nor compiled, in the run's precision.

    Batches are no larger than those of training, so that whoever makes these smaller for want of memory is helped.
    """
    exchange.share_buffers(model)  # the statistics of batch norms, of which each rank has seen its own samples only
    mean_loss, has_accuracy = loss_for(dataset.target), dataset.target is Target.CLASS
    mine = torch.arange(rank.rank, len(dataset.evaluation), rank.num_ranks)
    loss_sum = torch.zeros((), dtype=torch.float64, device=device)
    num_right = torch.zeros_like(loss_sum)
    model.eval()
    # Gathered weights must not become inference tensors: those cannot be trained on.
    with torch.no_grad() if isinstance(model, FSDPModule) else torch.inference_mode():
        for indices in torch.tensor_split(mine, count_batches(len(dataset.evaluation), rank, batch_size)):
            taken = indices if len(indices) else _STAND_IN
            inputs, targets = (tensor.to(device) for tensor in dataset.evaluation.take(taken))
            outputs = forward(inputs)
            if not len(indices):
                continue
            loss_sum += mean_loss(outputs, targets).double() * len(indices)
            if has_accuracy:
                num_right += (outputs.argmax(-1) == targets).sum()
    forget_forward(model)
    total_loss, total_right, count = exchange.add_up(loss_sum.item(), num_right.item(), len(mine))
    return Evaluation(total_loss / count, total_right / count if has_accuracy else None)


def count_batches(num_samples: int, rank: Rank, batch_size: int) -> int:
    """Forward passes of every rank: shares may differ by a sample, but FSDP's weights are gathered by all at once."""
    largest_share = math.ceil(num_samples / rank.num_ranks)
    return math.ceil(largest_share / batch_size)
