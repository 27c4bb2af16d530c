"""What is done block by block: a model without repeated blocks is refused rather than left as it is."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import checkpoint

from jobs.contract.errors import RefusedSpec
from jobs.contract.rules.parts import NO_BLOCKS
from jobs.contract.rules.table import refuse
from workers.engine.models import blocks_of


def require_blocks(model: nn.Module, field: str) -> list[nn.Module]:
    """The model's blocks; raises `RefusedSpec` at `field` where it has none."""
    blocks = blocks_of(model)
    if not blocks:
        raise RefusedSpec([refuse(field, NO_BLOCKS)])
    return blocks


def checkpoint_activations(model: nn.Module, *, in_graph: bool = False) -> None:
    """Each block computes its activations again in the backward pass; in place, so that names stay.

    A step that is recorded `in_graph` cannot put random streams back, and dropout there is refused by a rule.
    By a class of its own and not by an attribute `forward`, which DataParallel would copy with the first GPU's weights.
    """
    for block in require_blocks(model, "activation_checkpointing"):
        block.__class__ = _checkpointed(
            type(block), has_statistics=bool(_batch_norms(block)), keeps_random_streams=not in_graph
        )


def _checkpointed(kind: type[nn.Module], *, has_statistics: bool, keeps_random_streams: bool) -> type[nn.Module]:
    options: dict[str, Any] = {"use_reentrant": False, "preserve_rng_state": keeps_random_streams}

    def forward(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        if has_statistics and not torch.compiler.is_compiling():  # compiled, they are written once anyway
            kwargs["context_fn"] = partial(_count_once, _batch_norms(self))
        return checkpoint(partial(kind.forward, self), *args, **options, **kwargs)

    return type(f"Checkpointed{kind.__name__}", (kind,), {"forward": forward})


def _batch_norms(block: nn.Module) -> list[_BatchNorm]:
    return [module for module in block.modules() if isinstance(module, _BatchNorm)]


def _count_once(norms: list[_BatchNorm]) -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """The contexts of computing a block and of computing it again, which must not count the samples a second time."""
    return nullcontext(), _statistics_kept(norms)


@contextmanager
def _statistics_kept(norms: list[_BatchNorm]) -> Iterator[None]:
    """Batch norms go on computing from the samples, and leave their running statistics alone.

    By their momentum, because without statistics to write they would save other tensors than in the forward pass.
    """
    before = [(norm.momentum, norm.num_batches_tracked) for norm in norms]
    for norm in norms:
        norm.momentum = 0.0
        norm.num_batches_tracked = None if norm.num_batches_tracked is None else norm.num_batches_tracked.clone()
    try:
        yield
    finally:
        for norm, (momentum, num_batches_tracked) in zip(norms, before, strict=True):
            norm.momentum, norm.num_batches_tracked = momentum, num_batches_tracked
