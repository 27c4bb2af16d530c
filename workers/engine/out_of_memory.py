"""An allocator's refusal, taken apart: what was asked for, what was held, by whom, and what to try instead.

Free of torch until a run has imported it, because a launcher's side needs this room too.
"""

import re
import sys
from pathlib import Path
from typing import Any

from jobs.contract.errors import OutOfMemory
from jobs.contract.events import MemoryHolder, MemoryInfo
from jobs.contract.proposals import with_smaller_micro_batch
from jobs.contract.spec import TrainSpec
from workers.engine.report import Report

NUM_HOLDERS = 3
_IMPORTING = "importing"  # the phase
# How allocators word a refusal where they have no exception type of their own.
_PHRASES = ("can't allocate memory", "not enough memory", "out of memory", "ALLOC_FAILED")
_LINKER_PHRASES = ("failed to map segment", "cannot allocate memory", "Cannot allocate memory")
_ASKED = re.compile(r"tried to allocate ([\d.]+) (bytes|KiB|MiB|GiB|TiB)", re.IGNORECASE)
_UNITS = {"bytes": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an allocator refused, on the GPU or on the host."""
    if isinstance(error, MemoryError):
        return True
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(error, torch.OutOfMemoryError):
        return True
    if isinstance(error, ImportError):  # the dynamic linker's words
        return any(phrase in str(error) for phrase in _LINKER_PHRASES)
    return isinstance(error, RuntimeError) and any(phrase in str(error) for phrase in _PHRASES)


def describe_memory(error: BaseException, report: Report) -> MemoryInfo:
    """The figures at the moment of the refusal; None where there is no such figure."""
    allocated_bytes = reserved_bytes = None
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        allocated_bytes, reserved_bytes = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    held = report.inventory() if report.inventory else {}
    if allocated_bytes is not None:
        held["activations and other tensors"] = max(0, allocated_bytes - sum(held.values()))
    holders = [MemoryHolder(name=name, size_bytes=size) for name, size in held.items() if size]
    return MemoryInfo(
        asked_bytes=read_asked_bytes(str(error)),
        allocated_bytes=allocated_bytes,
        reserved_bytes=reserved_bytes,
        rss_bytes=_read_rss(),
        largest=sorted(holders, key=lambda holder: holder.size_bytes, reverse=True)[:NUM_HOLDERS],
    )


def read_asked_bytes(message: str) -> int | None:
    """The size in an allocator's message; GPUs' are rounded there. None where it says none."""
    found = _ASKED.search(message)
    return round(float(found[1]) * _UNITS[found[2].lower()]) if found else None


def as_sentence(report: Report, reason: str, proposed: TrainSpec | None) -> OutOfMemory:
    """What a user reads."""
    where = f"in phase {report.phase or 'start'}" + (f" at step {report.step}" if report.step else "")
    advice = "There is no smaller micro-batch; choose a smaller model or a device with more memory."
    if proposed:
        advice = (
            f"A micro-batch of {proposed.micro_batch_size} with {proposed.grad_accum_steps} accumulated "
            "keeps the global batch and needs less."
        )
    elif report.phase == _IMPORTING:
        advice = "Not even PyTorch itself fits; raise the limit."
    elif report.spec is None:
        advice = "A smaller micro-batch with more gradient accumulation needs less."
    return OutOfMemory(f"Memory ran out {where} ({reason}). {advice}")


def propose(report: Report) -> TrainSpec | None:
    """The spec that was asked for, in smaller micro-batches; they are no help before there is a model."""
    if report.spec is None or report.phase == _IMPORTING:
        return None
    return with_smaller_micro_batch(report.spec)


def _read_rss() -> int | None:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return None
