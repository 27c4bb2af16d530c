"""A small GPT of our own: pre-norm blocks, learned positions. Shapes: B batch, T time, C width, H heads."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from workers.engine.data.dataset import Dataset

_INIT_STD = 0.02  # GPT-2's


def build_gpt_tiny(dataset: Dataset, dropout: float) -> nn.Module:
    """2 layers, width 128, 4 heads; context and vocabulary are the data set's."""
    (context,) = dataset.sample_shape
    return Gpt(num_layers=2, width=128, num_heads=4, context=context, vocabulary=dataset.num_classes, dropout=dropout)


class CausalSelfAttention(nn.Module):
    """Multi-head attention in which a position sees itself and what came before."""

    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        batch, time, width = x.shape
        qkv = self.qkv(x).view(batch, time, 3, self.num_heads, width // self.num_heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # each (B, H, T, C / H)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        projected: Tensor = self.projection(mixed.transpose(1, 2).reshape(batch, time, width))
        return projected


class Block(nn.Module):
    """Attention and a perceptron of four times the width, each behind a norm and added to its input."""

    def __init__(self, width: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout) if dropout else nn.Identity()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = CausalSelfAttention(width, num_heads)
        self.mlp_norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        x = x + self.dropout(self.attention(self.attention_norm(x)))
        x = x + self.dropout(self.mlp(self.mlp_norm(x)))
        return x


class Gpt(nn.Module):
    """Tokens (B, T) to logits of the next token (B, T, vocabulary)."""

    def __init__(
        self, num_layers: int, width: int, num_heads: int, context: int, vocabulary: int, dropout: float
    ) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.empty(context, width))
        self.blocks = nn.Sequential(*(Block(width, num_heads, dropout) for _ in range(num_layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.apply(_initialize)
        nn.init.normal_(self.positions, std=_INIT_STD)

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, T) of token ids -> (B, T, vocabulary)."""
        x = self.token_embedding(tokens) + self.positions[: tokens.shape[1]]
        logits: Tensor = self.head(self.norm(self.blocks(x)))
        return logits


def _initialize(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=_INIT_STD)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
