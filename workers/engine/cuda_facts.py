"""The GPUs that this process sees, after CUDA_VISIBLE_DEVICES; empty on a host without any."""

import re
from typing import Any

import torch
from torch.distributed import is_nccl_available

from jobs.contract.facts import DeviceFacts
from workers.engine.peaks import datasheet_of

_FIRST_CAPABILITY_WITH_BF16 = (8, 0)


def read_gpus() -> list[DeviceFacts]:
    """One entry per visible GPU. Starts CUDA."""
    if not torch.cuda.is_available():
        return []
    return [_read_gpu(index) for index in range(torch.cuda.device_count())]


def _read_gpu(index: int) -> DeviceFacts:
    properties = torch.cuda.get_device_properties(index)
    capability = (properties.major, properties.minor)
    return DeviceFacts(
        kind="cuda",
        index=index,
        name=properties.name,
        uuid=f"GPU-{properties.uuid}",  # as nvidia-smi and NVML spell it
        memory_bytes=properties.total_memory,
        compute_capability=capability,
        has_native_bf16=capability >= _FIRST_CAPABILITY_WITH_BF16,
        has_kernels=has_kernels_for(capability, torch.cuda.get_arch_list()),
        datasheet=datasheet_of(properties.name),
    )


def has_kernels_for(capability: tuple[int, int], architectures: list[str]) -> bool:
    """Whether kernels built for `architectures` (sm_80, compute_90, ...) run on a GPU of that compute capability.

    Machine code (sm) runs on the same major version from its minor on; PTX (compute) on everything from its version on.
    """
    for architecture in architectures:
        match = re.match(r"(sm|compute)_(\d+)(\d)", architecture)
        if match is None:
            continue
        kind, built_for = match[1], (int(match[2]), int(match[3]))
        if built_for <= capability and (kind == "compute" or built_for[0] == capability[0]):
            return True
    return False


def read_library_versions() -> dict[str, str]:
    """Of the libraries that torch was built with; empty for one that it was built without. Needs no GPU."""
    cudnn: Any = torch.backends.cudnn
    nccl: Any = torch.cuda.nccl
    return {
        "cudnn": str(cudnn.version()) if cudnn.is_available() else "",
        "nccl": ".".join(map(str, nccl.version())) if is_nccl_available() else "",
    }


def read_driver_version() -> str | None:
    """The NVIDIA driver's version; None without a driver or without nvidia-ml-py."""
    try:
        import pynvml  # optional: only GPU hosts install it
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        version = pynvml.nvmlSystemGetDriverVersion()
        pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        return None
    return str(version)
