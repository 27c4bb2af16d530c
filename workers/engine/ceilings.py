"""What a device really reaches: square matrix products and a copy in memory, each for a fraction of a second."""

import time
from collections.abc import Callable

import torch

from jobs.contract.facts import Ceilings, DeviceFacts
from workers.engine.devices import synchronize

_CPU_SIZE, _CUDA_SIZE = 1024, 8192  # a matrix's rows and columns
_CPU_COPY_BYTES, _CUDA_COPY_BYTES = 256 * 2**20, 2**30  # beyond any cache
_BUDGET_S = 0.3
_MAX_RUNS = 50


def measure_ceilings(facts: DeviceFacts, budget_s: float = _BUDGET_S) -> Ceilings:
    """Best of repeated runs per arithmetic; on a device that nothing else should be using now."""
    device = torch.device(facts.kind, facts.index) if facts.kind == "cuda" else torch.device("cpu")
    return Ceilings(
        matmul_flops_per_s={name: _matmul_rate(name, device, budget_s) for name in _arithmetics(facts)},
        copy_bytes_per_s=_copy_rate(device, budget_s),
    )


def _arithmetics(facts: DeviceFacts) -> list[str]:
    if facts.kind == "cpu":
        return ["fp32", "bf16"] if facts.has_native_bf16 else ["fp32"]
    names = ["fp32", "fp16"]
    if facts.compute_capability and facts.compute_capability >= (8, 0):
        names += ["tf32", "bf16"]
    return names


def _matmul_rate(arithmetic: str, device: torch.device, budget_s: float) -> float:
    size = _CUDA_SIZE if device.type == "cuda" else _CPU_SIZE
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(arithmetic, torch.float32)
    left, right = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    result = torch.empty_like(left)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if arithmetic == "tf32" else "highest")
    try:
        seconds = _best_s(lambda: torch.mm(left, right, out=result), device, budget_s)
    finally:
        torch.set_float32_matmul_precision(before)
    return 2 * size**3 / seconds


def _copy_rate(device: torch.device, budget_s: float) -> float:
    """Bytes read plus bytes written per second."""
    size = _CUDA_COPY_BYTES if device.type == "cuda" else _CPU_COPY_BYTES
    source = torch.zeros(size // 4, device=device)
    target = torch.ones_like(source)
    return 2 * source.nbytes / _best_s(lambda: target.copy_(source), device, budget_s)


def _best_s(work: Callable[[], object], device: torch.device, budget_s: float) -> float:
    work()  # libraries load and choose at the first call
    times_s: list[float] = []
    while not times_s or (sum(times_s) < budget_s and len(times_s) < _MAX_RUNS):
        synchronize(device)
        began_s = time.perf_counter()
        work()
        synchronize(device)
        times_s.append(time.perf_counter() - began_s)
    return min(times_s)
