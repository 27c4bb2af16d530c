"""What libraries read from the environment, and only once: set before CUDA and the compiler start."""

import os
from pathlib import Path

from jobs.contract.spec import TrainSpec

_CUBLAS_WORKSPACE = ":4096:8"  # fixed buffers: without them cuBLAS may give other bits from stream to stream
_EXPANDABLE_SEGMENTS = "expandable_segments:True"


def environment_of(spec: TrainSpec) -> dict[str, str]:
    """The variables that a spec needs; what is set already stays, but for what the spec asks for by name."""
    variables = {"TORCHINDUCTOR_CACHE_DIR": os.environ.get("TORCHINDUCTOR_CACHE_DIR") or str(compile_cache())}
    if spec.deterministic:
        variables["CUBLAS_WORKSPACE_CONFIG"] = _CUBLAS_WORKSPACE
    if spec.expandable_segments:
        # PyTorch 2.9 gave the variable its second name and still reads the first.
        variables |= dict.fromkeys(("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"), _EXPANDABLE_SEGMENTS)
    if spec.cuda_graph:
        variables["TORCH_NCCL_ASYNC_ERROR_HANDLING"] = "0"  # its watchdog asks events that a recording must not see
    return variables


def can_start_warm(spec: TrainSpec) -> bool:
    """Whether all variables that the spec needs can still be set once torch is imported, but CUDA has not started.

    The allocator's come too late then, and ranks are processes of their own in any case.
    """
    return not (spec.expandable_segments or spec.uses_ranks)


def compile_cache() -> Path:
    """One folder for all jobs of a user, so that a second job starts from what the first has compiled."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pitwall" / "inductor"
