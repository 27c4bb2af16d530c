"""BERT (arXiv:1810.04805) from `transformers` configurations, with fresh weights.

As a classifier of sequences, because that is what guides to GPU acceleration fine-tune.
"""

from typing import Any

from torch import nn
from transformers import BertConfig, BertForSequenceClassification

from workers.engine.data.dataset import Dataset
from workers.engine.models.logits import ATTENTION, Logits

_VOCABULARY = 30_522
_MAX_LENGTH = 512
SHAPES: dict[str, dict[str, Any]] = {
    "bert-base": {
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
    },
    "bert-large": {
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
    },
}


def build_bert_base(dataset: Dataset, dropout: float) -> nn.Module:
    """12 layers of width 768."""
    return _build("bert-base", dataset, dropout)


def build_bert_large(dataset: Dataset, dropout: float) -> nn.Module:
    """24 layers of width 1024."""
    return _build("bert-large", dataset, dropout)


def _build(name: str, dataset: Dataset, dropout: float) -> nn.Module:
    config = BertConfig(
        vocab_size=max(_VOCABULARY, dataset.vocabulary or 0),
        max_position_embeddings=_MAX_LENGTH,
        num_labels=dataset.num_classes,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        pad_token_id=dataset.padding,
        use_cache=False,
        **SHAPES[name],
    )
    model = BertForSequenceClassification._from_config(config, attn_implementation=ATTENTION)
    return Logits(model, model.bert.encoder.layer, dataset.padding)
