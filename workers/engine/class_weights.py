"""The weighted loss: each class counts as much as the spec says."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from jobs.contract.choices import ClassWeights
from workers.engine.data.dataset import Dataset
from workers.engine.losses import MeanLoss, loss_for


class WeightedCrossEntropy(nn.Module):
    """Cross-entropy with a weight per class; the weights are a buffer, so the loss moves to a device with them.

    The sum is divided by the number of samples, not by the sum of their weights as torch's mean is: so the
    micro-batches of a step add up to the big batch's gradient whatever classes each of them holds.
    """

    weights: Tensor

    def __init__(self, weights: Tensor) -> None:
        super().__init__()
        self.register_buffer("weights", weights)

    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Outputs (N, classes) and targets (N,) to the weighted sum over N samples, divided by N."""
        return functional.cross_entropy(outputs, targets, weight=self.weights, reduction="sum") / len(targets)


def balanced_weights(labels: Tensor, num_classes: int) -> Tensor:
    """(classes,) float32, N / (classes * count), so that the mean over the N labels is 1; 0 for a class without any."""
    counts = torch.bincount(labels, minlength=num_classes)
    weights = len(labels) / (num_classes * counts.clamp(min=1).float())
    return torch.where(counts > 0, weights, torch.zeros(()))


def build_criterion(choice: ClassWeights, dataset: Dataset, device: torch.device) -> MeanLoss:
    """The training loss, of a classifier with the spec's class weights."""
    if choice is ClassWeights.NONE:
        return loss_for(dataset.target)
    assert dataset.train.labels is not None  # noqa: S101 - refused for data without labels
    return WeightedCrossEntropy(balanced_weights(dataset.train.labels, dataset.num_classes)).to(device)
