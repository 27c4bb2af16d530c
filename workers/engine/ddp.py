"""DistributedDataParallel with the spec's options."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

from jobs.contract.choices import DdpCommHook
from jobs.contract.rules.parallelism import POWERSGD_START_STEP
from jobs.contract.spec import TrainSpec


def wrap_in_ddp(model: nn.Module, spec: TrainSpec, device: torch.device) -> DistributedDataParallel:
    """The model with its gradients averaged over ranks."""
    if spec.sync_batchnorm:
        model = nn.SyncBatchNorm.convert_sync_batchnorm(model)  # type: ignore[no-untyped-call]
    options: dict[str, Any] = {
        "device_ids": [device.index] if device.type == "cuda" else None,
        "gradient_as_bucket_view": spec.ddp_gradient_as_bucket_view,
        "static_graph": spec.ddp_static_graph,
        "find_unused_parameters": spec.ddp_find_unused_parameters,
    }
    if spec.ddp_bucket_cap_mb is not None:
        options["bucket_cap_mb"] = spec.ddp_bucket_cap_mb
    elif spec.ddp_comm_hook is DdpCommHook.POWERSGD and device.type == "cpu":
        # Under gloo the parts of two buckets overtake each other, differently on each rank, and the run hangs.
        options["bucket_cap_mb"] = _size_mib(model)
    with _side_stream(device) if spec.cuda_graph else nullcontext():
        wrapped = DistributedDataParallel(model, **options)
    _register_hook(wrapped, spec.ddp_comm_hook)
    return wrapped


def _size_mib(model: nn.Module) -> int:
    """Whole MiB that hold all gradients, with room to spare."""
    return 1 + sum(parameter.nbytes for parameter in model.parameters()) // 2**20


def _side_stream(device: torch.device) -> AbstractContextManager[Any]:
    """DDP that is to be recorded must not have been built on the default stream, which a recording may not use."""
    return torch.cuda.stream(torch.cuda.Stream(device))  # type: ignore[no-untyped-call]


def _register_hook(wrapped: DistributedDataParallel, hook: DdpCommHook) -> None:
    if hook is DdpCommHook.BF16:
        wrapped.register_comm_hook(None, default_hooks.bf16_compress_hook)
    if hook is DdpCommHook.POWERSGD:
        state = PowerSGDState(process_group=None, start_powerSGD_iter=POWERSGD_START_STEP)
        wrapped.register_comm_hook(state, powerSGD_hook)
