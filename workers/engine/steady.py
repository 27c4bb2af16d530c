"""Whether the steady part was steady: two equal windows at its end, nothing compiled anew, memory flat."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch._dynamo.utils import counters

from jobs.contract.messages import gettext_noop as _

MAX_DIFFERENCE = 0.02  # between the medians of the last two windows


@dataclass(frozen=True)
class Ground:
    """What must not change while steps are timed."""

    num_compiled_frames: int
    num_allocator_retries: int
    reserved_bytes: int

    @classmethod
    def now(cls, devices: Sequence[torch.device]) -> "Ground":
        """As it is now; torch's allocator exists on GPUs only."""
        stats = [torch.cuda.memory_stats(device) for device in devices if device.type == "cuda"]
        retries = sum(gpu.get("num_alloc_retries", 0) for gpu in stats)
        reserved_bytes = sum(gpu.get("reserved_bytes.all.current", 0) for gpu in stats)
        return cls(counters["frames"]["total"], retries, reserved_bytes)


def why_not_steady(window_medians_ms: list[float], before: Ground, settled: Ground, after: Ground) -> str | None:
    """A sentence that says what was not steady; None where all was.

    Grounds are as the steady part began, before its last two windows, and as it ended. Reserved memory may still grow
    at first: the second block of batches and a longer window's losses come after the warm-up.
    """
    if len(window_medians_ms) < 2:
        return _("Fewer than two windows were measured; train for more steps.")
    if after.num_compiled_frames != before.num_compiled_frames:
        return _("The model was compiled again while steps were timed.")
    if after.num_allocator_retries != before.num_allocator_retries:
        return _("The GPU's allocator had to free memory and try again while steps were timed.")
    if after.reserved_bytes != settled.reserved_bytes:
        return _("Reserved GPU memory still changed in the last two windows.")
    last_but_one, last = window_medians_ms[-2:]
    difference = abs(last - last_but_one) / min(last, last_but_one)
    if difference >= MAX_DIFFERENCE:
        return f"The last two windows' median step times differ by {100 * difference:.1f} %."
    return None
