"""A small convolutional classifier without batch normalisation, so that DDP gives the losses of one process."""

from torch import nn

from workers.engine.data.dataset import Dataset


def build_convnet(dataset: Dataset, dropout: float) -> nn.Module:
    """Two 3x3 convolutions (32 and 64 channels), pooling by 2 after the second, and two linear layers."""
    channels, height, width = dataset.sample_shape
    return nn.Sequential(
        nn.Conv2d(channels, 32, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * (height // 2) * (width // 2), 128),
        nn.ReLU(),
        *([nn.Dropout(dropout)] if dropout else []),
        nn.Linear(128, dataset.num_classes),
    )
