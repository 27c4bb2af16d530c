"""The vision transformer B/16 (arXiv:2010.11929) from a `transformers` configuration, with fresh weights."""

from typing import Any

from torch import nn
from transformers import ViTConfig, ViTForImageClassification

from workers.engine.data.dataset import Dataset
from workers.engine.models.logits import ATTENTION, Logits

SHAPE: dict[str, Any] = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
}


def build_vit_b16(dataset: Dataset, dropout: float) -> nn.Module:
    """12 layers of width 768 over patches of 16x16 pixels; images are square."""
    channels, height, _width = dataset.sample_shape
    config = ViTConfig(
        image_size=height,
        patch_size=16,
        num_channels=channels,
        num_labels=dataset.num_classes,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        **SHAPE,
    )
    model = ViTForImageClassification._from_config(config, attn_implementation=ATTENTION)
    return Logits(model, model.vit.layers)
