"""What makes a model of the `transformers` library one of ours: tensors in, logits out, and its blocks by name.

The library makes attention masks in every forward pass, and looks at their values on the host to leave out those that
mask nothing: with `sdpa` that is one wait for the GPU per step, and a mask in place of the causal kernel once compiled
(seen in 5.23). Its own way out is an attention function that it knows no masks for. `ATTENTION` is such a name for the
same function: decoders are then causal by flag, and a mask for filled-up sequences is made here.
"""

from collections.abc import Iterable
from typing import cast

from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

ATTENTION = "pitwall_sdpa"
AttentionInterface.register(ATTENTION, sdpa_attention_forward)


class Logits(nn.Module):
    """Samples (N, ...) to logits (N, ..., classes) of a `transformers` model."""

    def __init__(self, model: nn.Module, blocks: Iterable[nn.Module], padding: int | None = None) -> None:
        """`padding` is the token that the model must not look at, None where no sequence is filled up."""
        super().__init__()
        self.model = model
        self.blocks = list(blocks)  # a plain list: they are registered inside the model already
        self._padding = padding

    def forward(self, samples: Tensor) -> Tensor:
        """The model's logits, nothing else: a loss is the engine's work."""
        if self._padding is None:
            return cast(Tensor, self.model(samples).logits)
        mask = (samples != self._padding)[:, None, None, :]  # (N, 1, 1, T), over heads and queries
        return cast(Tensor, self.model(samples, attention_mask=mask.expand(-1, 1, samples.shape[1], -1)).logits)
