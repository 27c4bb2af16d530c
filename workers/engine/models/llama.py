"""A Llama (arXiv:2302.13971) of 162 million parameters from a `transformers` configuration, with fresh weights."""

from typing import Any

from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

from workers.engine.data.dataset import Dataset
from workers.engine.models.logits import ATTENTION, Logits

_VOCABULARY = 32_000
_MAX_LENGTH = 2048
SHAPE: dict[str, Any] = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
}


def build_llama_160m(dataset: Dataset, _dropout: float) -> nn.Module:
    """12 layers of width 768 with rotary positions; the vocabulary is Llama's own where the data set's is smaller."""
    config = LlamaConfig(
        vocab_size=max(_VOCABULARY, dataset.num_classes),
        max_position_embeddings=_MAX_LENGTH,
        use_cache=False,
        **SHAPE,
    )
    model = LlamaForCausalLM._from_config(config, attn_implementation=ATTENTION)
    return Logits(model, model.model.layers)
