"""Switches of PyTorch's backends that hold for a whole process: determinism, cuDNN, attention kernels."""

import torch
from torch.backends import cuda as attention  # these switches hold for the CPU's attention as well

from jobs.contract.choices import SdpaBackend
from jobs.contract.spec import TrainSpec


def apply_backends(spec: TrainSpec) -> None:
    """Set every switch, whichever way it stood before."""
    torch.use_deterministic_algorithms(spec.deterministic)
    torch.backends.cudnn.deterministic = spec.deterministic
    torch.backends.cudnn.benchmark = spec.cudnn_benchmark
    asked = spec.sdpa_backend
    for name, enable in (
        (SdpaBackend.MATH, attention.enable_math_sdp),
        (SdpaBackend.FLASH, attention.enable_flash_sdp),
        (SdpaBackend.EFFICIENT, attention.enable_mem_efficient_sdp),
        (SdpaBackend.CUDNN, attention.enable_cudnn_sdp),
    ):
        enable(asked in (SdpaBackend.AUTO, name))
