"""A profile of some steps after everything was measured: what ran, for how long, and whose code it was.

Leaves three files: a table of operators grouped by library, a trace for chrome://tracing or Perfetto, and on a GPU a
snapshot of the allocator's history for https://pytorch.org/memory_viz.
"""

import gzip
import json
import re
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch
from torch.autograd import DeviceType  # type: ignore[attr-defined]
from torch.profiler import ProfilerActivity, profile, schedule

from jobs.contract.errors import DiskFull
from jobs.contract.events import Artifact
from workers.engine.report import Report
from workers.engine.step import Step

FOLDER = "profile"
NUM_OPERATORS = 50
NUM_WARMUP_STEPS = 1  # the profiler's own first step is slow
_MAX_MEMORY_EVENTS = 100_000

# Whose code a kernel or an operator is, by its name; the first that fits. GPUs' kernels are named by their libraries,
# a CPU's operators only by what they do.
_LIBRARIES = [
    ("NCCL", r"nccl"),
    ("attention", r"flash|fmha|mem_eff|attention"),
    ("cuDNN", r"cudnn|implicit_convolve|fprop|dgrad|wgrad"),
    ("cuFFT", r"cufft|regular_fft|vector_fft"),
    ("cuSPARSE", r"cusparse"),
    ("cuBLAS", r"cublas|gemm|gemv|cutlass|splitKreduce|nvjet"),
    ("Triton", r"triton"),
    ("Inductor", r"cpp_fused|inductor|CompiledFxGraph|## Call"),
    ("oneDNN", r"mkldnn|onednn"),
    ("BLAS", r"aten::(addmm|mm|bmm|baddbmm|addmv|mv|dot)$"),
    ("FFT", r"aten::_fft"),
    ("memory", r"Memcpy|Memset|memcpy|memset"),
    ("gloo", r"gloo|c10d"),
    ("autograd", r"autograd::|Backward\d*$"),
    ("optimizer", r"^Optimizer\."),
    ("ATen", r"^aten::|at::native|at_cuda"),
]
_MARKS = re.compile(r"^ProfilerStep|^\[memory\]")  # the profiler's own


def profile_steps(step: Step, num_steps: int, device: torch.device, folder: Path, report: Report) -> None:
    """Take `num_steps` steps (and one before) under the profiler; files go to `folder`/profile."""
    target = folder / FOLDER
    target.mkdir(parents=True, exist_ok=True)
    has_gpu = device.type == "cuda"
    if has_gpu:
        torch.cuda.memory._record_memory_history(max_entries=_MAX_MEMORY_EVENTS)
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if has_gpu else [])]
    plan = schedule(wait=0, warmup=NUM_WARMUP_STEPS, active=num_steps, repeat=1)
    with profile(activities=activities, schedule=plan, record_shapes=True, profile_memory=True) as profiler:
        for _ in range(NUM_WARMUP_STEPS + num_steps):
            step()
            profiler.step()
    if has_gpu:
        torch.cuda.memory._dump_snapshot(str(target / "memory_snapshot.pickle"))  # type: ignore[no-untyped-call]
        torch.cuda.memory._record_memory_history(enabled=None)
        _announce(target / "memory_snapshot.pickle", "memory_snapshot", report)
    table = tabulate(profiler.key_averages(), num_steps, on_gpu=has_gpu)
    (target / "operators.json").write_text(json.dumps(table, indent=1))
    _announce(target / "operators.json", "operators", report)
    _write_trace(profiler, target / "trace.json.gz")
    _announce(target / "trace.json.gz", "trace", report)


def _write_trace(profiler: profile, path: Path) -> None:
    """The compressed trace, whole or not at all.

    Where the disk is full the profiler's writer only leaves its temporary file behind: there is nothing to catch.
    """
    plain, part = path.with_name("trace.part.json"), path.with_name("trace.part.gz")
    try:
        profiler.export_chrome_trace(str(plain))
        if not plain.exists():
            raise DiskFull(f"The trace {path}")
        with plain.open("rb") as source, gzip.open(part, "wb") as target:
            shutil.copyfileobj(source, target)
        part.rename(path)
    finally:
        for left in path.parent.glob("trace.part.*"):
            left.unlink()


def take_along(step: Step, num_steps: int) -> None:
    """The same steps on a rank that is not profiled, because the profiled one waits for it."""
    for _ in range(NUM_WARMUP_STEPS + num_steps):
        step()


def tabulate(averages: Any, num_steps: int, *, on_gpu: bool) -> dict[str, Any]:
    """The operators with the most self time, and all self time by library; microseconds over all profiled steps.

    On a GPU it is the device's time, and libraries are told by kernels; on a CPU the host's, by operators.
    """
    rows = [_row(average) for average in averages if not _MARKS.search(average.key)]
    unit = "self_device_us" if on_gpu else "self_cpu_us"
    rows.sort(key=lambda row: row[unit], reverse=True)
    by_library: dict[str, float] = defaultdict(float)
    for row in rows:
        if row["is_kernel"] == on_gpu:
            by_library[row["library"]] += row[unit]
    total_us = sum(by_library.values()) or 1.0
    ordered = sorted(by_library.items(), key=lambda item: item[1], reverse=True)
    libraries = [{"library": name, unit: time_us, "share": time_us / total_us} for name, time_us in ordered]
    return {"num_steps": num_steps, "sorted_by": unit, "operators": rows[:NUM_OPERATORS], "libraries": libraries}


def _row(average: Any) -> dict[str, Any]:
    return {
        "name": average.key,
        "library": library_of(average.key),
        "is_kernel": average.device_type != DeviceType.CPU,
        "count": average.count,
        "self_cpu_us": average.self_cpu_time_total,
        "cpu_us": average.cpu_time_total,
        "self_device_us": average.self_device_time_total,
        "device_us": average.device_time_total,
    }


def library_of(name: str) -> str:
    """The library that a kernel or an operator belongs to."""
    return next((library for library, pattern in _LIBRARIES if re.search(pattern, name)), "other")


def _announce(path: Path, kind: str, report: Report) -> None:
    file = f"{FOLDER}/{path.name}"
    report.emit(Artifact(name=path.name, kind=kind, file=file, size_bytes=path.stat().st_size))
