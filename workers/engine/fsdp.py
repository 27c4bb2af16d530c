"""FSDP2: weights, gradients and optimizer state are shared out over the ranks, block by block."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    CPUOffloadPolicy,
    FSDPModule,
    MixedPrecisionPolicy,
    OffloadPolicy,
    fully_shard,
)
from torch.nn.modules.batchnorm import _BatchNorm

from jobs.contract.spec import Precision, TrainSpec
from workers.engine.models import blocks_of

_COMPUTED_IN = {Precision.FP16_MIXED: torch.float16, Precision.BF16_MIXED: torch.bfloat16}


def shard_model(model: nn.Module, spec: TrainSpec, device: torch.device) -> nn.Module:
    """Shard each block, then what is left as the root; in place, so that names and the model's class stay.

    Gradients are reduced in float32 where weights are gathered in 16 bits. Batch norms are not: their statistics are in
    float32, and a norm whose weights were not raises. As under autocast they take inputs of 16 bits as these come.
    """
    mesh = init_device_mesh(device.type, (spec.num_ranks,))
    computed_in = _COMPUTED_IN.get(spec.precision)
    reduced_in = None if computed_in is None else torch.float32
    offload = CPUOffloadPolicy() if spec.fsdp_cpu_offload else OffloadPolicy()
    for norm in _batch_norms(model) if computed_in else ():
        as_they_are = MixedPrecisionPolicy(cast_forward_inputs=False)
        fully_shard(norm, mesh=mesh, mp_policy=as_they_are, offload_policy=offload)
    for block in blocks_of(model):
        policy = MixedPrecisionPolicy(param_dtype=computed_in, reduce_dtype=reduced_in)
        fully_shard(block, mesh=mesh, mp_policy=policy, offload_policy=offload)
    policy = MixedPrecisionPolicy(param_dtype=computed_in, reduce_dtype=reduced_in, output_dtype=reduced_in)
    fully_shard(model, mesh=mesh, mp_policy=policy, offload_policy=offload)
    return model


def _batch_norms(model: nn.Module) -> list[nn.Module]:
    return [module for module in model.modules() if isinstance(module, _BatchNorm)]


@contextmanager
def gradients_kept(model: FSDPModule) -> Iterator[None]:
    """Gradients stay whole on their rank while the block runs, for all micro-batches but a step's last."""
    model.set_requires_gradient_sync(False)
    try:
        yield
    finally:
        model.set_requires_gradient_sync(True)


def forget_forward(model: nn.Module) -> None:
    """Undo what a forward pass without a backward one leaves behind: the root's gathered weights.

    Without this the next backward pass loses gradients; the losses of a sharded run then differed from the second on.
    """
    if isinstance(model, FSDPModule):
        for module in model.modules():
            if isinstance(module, FSDPModule):
                module.reshard()
