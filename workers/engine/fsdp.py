"""FSDP2: weights, gradients and optimizer state are shared out over the ranks, block by block."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    CPUOffloadPolicy,
    FSDPModule,
    MixedPrecisionPolicy,
    OffloadPolicy,
    fully_shard,
)
from torch.distributed.fsdp._fully_shard._fsdp_collectives import DefaultAllGather, DefaultReduceScatter
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


@contextmanager
def nothing_sent(model: nn.Module) -> Iterator[None]:
    """Each rank computes by itself while the block runs: as much as always, with weights that are worth nothing."""
    _communicate_by(model, _NothingGathered(), _NothingReduced())
    try:
        yield
    finally:
        _communicate_by(model, DefaultAllGather(), DefaultReduceScatter())


class _NothingGathered(DefaultAllGather):
    """The own shard stands in for everybody's: what is left there from before could be numbers that compute slowly."""

    def __call__(
        self, output_tensor: Tensor, input_tensor: Tensor, group: dist.ProcessGroup, async_op: bool = False
    ) -> None:
        for shard in output_tensor.chunk(group.size()):
            shard.copy_(input_tensor)


class _NothingReduced(DefaultReduceScatter):
    """The own gradients, so that the optimizer has as much to do."""

    def __call__(  # type: ignore[override]  # nobody asks for the work that is not under way
        self,
        output_tensor: Tensor,
        input_tensor: Tensor,
        group: dist.ProcessGroup,
        op: dist.ReduceOp | dist.ReduceOp.RedOpType,
        async_op: bool = False,
    ) -> None:
        output_tensor.copy_(input_tensor.chunk(group.size())[group.rank()])


def _communicate_by(model: nn.Module, gather: DefaultAllGather, reduce: DefaultReduceScatter) -> None:
    for module in _sharded(model):
        module.set_custom_all_gather(gather)
        module.set_custom_reduce_scatter(reduce)


def forget_forward(model: nn.Module) -> None:
    """Undo what a forward pass without a backward one leaves behind: the root's gathered weights.

    Without this the next backward pass loses gradients; the losses of a sharded run then differed from the second on.
    """
    for module in _sharded(model):
        module.reshard()


def _sharded(model: nn.Module) -> list[FSDPModule]:
    return [module for module in model.modules() if isinstance(module, FSDPModule)]
