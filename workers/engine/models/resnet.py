"""ResNet-18 and ResNet-50 (arXiv:1512.03385) from `transformers` configurations, with fresh weights.

They have batch normalisation: under DDP each rank normalises by its own micro-batch, so losses differ from those of one
process with the same global batch.
"""

from typing import Any

from torch import nn
from transformers import ResNetConfig, ResNetForImageClassification

from workers.engine.data.dataset import Dataset
from workers.engine.models.logits import Logits

SHAPES: dict[str, dict[str, Any]] = {
    "resnet18": {"layer_type": "basic", "depths": [2, 2, 2, 2], "hidden_sizes": [64, 128, 256, 512]},
    "resnet50": {"layer_type": "bottleneck", "depths": [3, 4, 6, 3], "hidden_sizes": [256, 512, 1024, 2048]},
}


def build_resnet18(dataset: Dataset, _dropout: float) -> nn.Module:
    """8 blocks of two convolutions."""
    return _build("resnet18", dataset)


def build_resnet50(dataset: Dataset, _dropout: float) -> nn.Module:
    """16 bottlenecks of three convolutions."""
    return _build("resnet50", dataset)


def _build(name: str, dataset: Dataset) -> nn.Module:
    channels = dataset.sample_shape[0]
    config = ResNetConfig(num_channels=channels, num_labels=dataset.num_classes, **SHAPES[name])
    model = ResNetForImageClassification(config)
    return Logits(model, (block for stage in model.resnet.encoder.stages for block in stage.layers))
