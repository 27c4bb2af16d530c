"""GPT-2 (Radford et al. 2019) from `transformers` configurations, with fresh weights.

The vocabulary stays GPT-2's own, whatever smaller one the data set has, so that the model keeps its size and speed.
"""

from typing import Any

from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

from workers.engine.data.dataset import Dataset
from workers.engine.models.logits import ATTENTION, Logits

_VOCABULARY = 50_257
_MAX_LENGTH = 1024
SHAPES: dict[str, dict[str, Any]] = {
    "gpt2": {"n_embd": 768, "n_layer": 12, "n_head": 12},
    "gpt2-medium": {"n_embd": 1024, "n_layer": 24, "n_head": 16},
}


def build_gpt2(dataset: Dataset, dropout: float) -> nn.Module:
    """12 layers of width 768."""
    return _build("gpt2", dataset, dropout)


def build_gpt2_medium(dataset: Dataset, dropout: float) -> nn.Module:
    """24 layers of width 1024."""
    return _build("gpt2-medium", dataset, dropout)


def _build(name: str, dataset: Dataset, dropout: float) -> nn.Module:
    config = GPT2Config(
        vocab_size=max(_VOCABULARY, dataset.num_classes),
        n_positions=_MAX_LENGTH,
        resid_pdrop=dropout,
        embd_pdrop=dropout,
        attn_pdrop=dropout,
        use_cache=False,
        **SHAPES[name],
    )
    model = GPT2LMHeadModel._from_config(config, attn_implementation=ATTENTION)
    return Logits(model, model.transformer.h)
