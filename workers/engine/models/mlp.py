"""The two-layer perceptron: the smallest model, on which every microsecond of a training loop shows."""

import math

from torch import nn

from workers.engine.data.dataset import Dataset

_WIDTH = 128


def build_mlp(dataset: Dataset, dropout: float) -> nn.Module:
    """Flattened image or vector -> 128 -> classes, or one value, with ReLU."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(math.prod(dataset.sample_shape), _WIDTH),
        nn.ReLU(),
        *([nn.Dropout(dropout)] if dropout else []),
        nn.Linear(_WIDTH, dataset.num_classes),
    )
