"""The device that this process trains on, and what differs between kinds of device."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from jobs.contract.spec import DeviceKind
from workers.engine.parallel import Rank


def claim_gpu(asked: DeviceKind, rank: Rank) -> None:
    """Make this rank's GPU the current one, if there is one to be used, before anything else starts CUDA.

    Otherwise every rank would hold memory on GPU 0, and put its tensors there. Counting GPUs does not start CUDA.
    """
    if asked is not DeviceKind.CPU and torch.cuda.is_available() and rank.local_rank < torch.cuda.device_count():
        torch.cuda.set_device(rank.local_rank)


def device_of(kind: DeviceKind, rank: Rank) -> torch.device:
    """The device that this rank trains on."""
    return torch.device("cpu") if kind is DeviceKind.CPU else torch.device("cuda", rank.local_rank)


def building_on(device: torch.device, *, build_on_device: bool) -> AbstractContextManager[Any]:
    """The context to build a model in: on `device`, or on the CPU, where a seed gives the same weights for all devices.

    For building only: a default device costs every torch call inside it a detour through Python.
    """
    return device if build_on_device else nullcontext()


def synchronize(device: torch.device) -> None:
    """Wait for all work queued on the device; a CPU queues none."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
