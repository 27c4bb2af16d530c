"""Ranks: who this process is among them, how models are wrapped and how figures are brought together."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule
from torch.nn.parallel import DistributedDataParallel

from jobs.contract.spec import Parallelism, TrainSpec
from workers.engine.ddp import wrap_in_ddp
from workers.engine.fsdp import gradients_kept, nothing_sent, shard_model


@dataclass(frozen=True)
class Rank:
    """This process's place in a run; the only one of a run without torchrun."""

    rank: int = 0
    local_rank: int = 0
    num_ranks: int = 1

    @classmethod
    def from_torchrun(cls) -> "Rank":
        """The place that torchrun wrote into the environment."""
        return cls(int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"]), int(os.environ["WORLD_SIZE"]))


@contextmanager
def process_group(spec: TrainSpec, device: torch.device) -> Iterator[None]:
    """The ranks' connection while the block runs; nothing to connect without parallelism.

    Whatever holds the wrapped model must be gone when the block ends: the other order aborts. After an exception the
    traceback still holds it, so then the group is left to the process's end.
    """
    if not spec.uses_ranks:
        yield
        return
    if device.type == "cuda":
        # What is offloaded is clipped, unscaled and saved in the host's memory, where NCCL has no say.
        backend = "cpu:gloo,cuda:nccl" if spec.fsdp_cpu_offload else "nccl"
        dist.init_process_group(backend, device_id=device)
    else:
        dist.init_process_group("gloo")
    yield
    dist.destroy_process_group()


def wrap_model(model: nn.Module, spec: TrainSpec, device: torch.device) -> nn.Module:
    """The model as this spec's parallelism trains it."""
    if spec.parallelism is Parallelism.DDP:
        return wrap_in_ddp(model, spec, device)
    if spec.parallelism is Parallelism.FSDP2:
        return shard_model(model, spec, device)
    if spec.parallelism is Parallelism.DATA_PARALLEL:
        return nn.DataParallel(model, device_ids=list(range(spec.num_devices)))
    return model


def without_reduction(model: nn.Module) -> Callable[[], AbstractContextManager[None]] | None:
    """A context in which gradients stay on their rank; None where there is nobody to send them to."""
    if isinstance(model, FSDPModule):
        return partial(gradients_kept, model)
    return model.no_sync if isinstance(model, DistributedDataParallel) else None


def without_communication(model: nn.Module) -> Callable[[], AbstractContextManager[None]] | None:
    """A context in which a step sends neither weights nor gradients; None where there is nobody to send them to.

    It computes as much as any other step, and the ranks' weights differ afterwards.
    """
    return partial(nothing_sent, model) if isinstance(model, FSDPModule) else without_reduction(model)


class Exchange:
    """Brings figures of all ranks together; with one rank it only reads them."""

    def __init__(self, rank: Rank, device: torch.device) -> None:
        self._rank = rank
        self._device = device

    def collect(self, losses: list[Tensor], proposal: int) -> tuple[list[float], int]:
        """Each step's loss as the mean over ranks, and rank 0's proposal for the next window's length in steps."""
        stacked = torch.stack(losses)
        if self._rank.num_ranks == 1:
            return stacked.tolist(), proposal
        own = stacked.new_tensor([proposal if self._rank.rank == 0 else 0], dtype=torch.float64)
        message = torch.cat([stacked.double() / self._rank.num_ranks, own])
        dist.all_reduce(message)
        *means, length = message.tolist()
        return means, round(length)

    def gather(self, value: Any) -> list[Any]:
        """Everybody's value, in the order of ranks."""
        if self._rank.num_ranks == 1:
            return [value]
        gathered = [None] * self._rank.num_ranks
        dist.all_gather_object(gathered, value)
        return gathered

    def share_buffers(self, model: nn.Module) -> None:
        """Give all ranks rank 0's buffers, as DDP does before each of its forward passes and FSDP2 never does."""
        if self._rank.num_ranks > 1:
            for buffer in model.buffers():
                dist.broadcast(buffer, src=0)

    def add_up(self, *values: float) -> list[float]:
        """Each value's sum over ranks."""
        if self._rank.num_ranks == 1:
            return list(values)
        message = torch.tensor(values, dtype=torch.float64, device=self._device)
        dist.all_reduce(message)
        return message.tolist()
