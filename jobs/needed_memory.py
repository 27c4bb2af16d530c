"""What a run needs of a device, and whether that fits into a budget; boards and searches ask here alike.

Of a GPU it is what PyTorch reserved, not what tensors took of it (allocated). The run held that much: gaps between
tensors are in it, and what the steps before the steady part had needed, whose own peak is not measured. With no more
than was allocated it might have run or not. Of a CPU it is what the process held.
"""

from jobs.contract.metrics import Summary


def needed_bytes(summary: Summary) -> float | None:
    """What the run needed of one device; of an earlier version's run as far as it was told. None where nothing was."""
    known = (summary.peak_reserved_bytes, summary.peak_allocated_bytes, summary.peak_rss_bytes)
    return next((float(value) for value in known if value), None)


def fits(size_bytes: float | None, budget_bytes: float | None) -> bool:
    """Whether so much fits; what is not known does not, where there is a budget."""
    return budget_bytes is None or (size_bytes is not None and size_bytes <= budget_bytes)
