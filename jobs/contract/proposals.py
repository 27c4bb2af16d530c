"""What to try instead: a spec that does the same work with less memory."""

from jobs.contract.spec import TrainSpec


def with_smaller_micro_batch(spec: TrainSpec) -> TrainSpec | None:
    """The same global batch in smaller micro-batches, half the size where that goes; None where one sample is left.

    An odd micro-batch is divided by its smallest factor, because only whole micro-batches keep the global batch.
    """
    size = spec.micro_batch_size
    factor = next((candidate for candidate in range(2, size + 1) if size % candidate == 0), None)
    if factor is None:
        return None
    smaller = {"micro_batch_size": size // factor, "grad_accum_steps": spec.grad_accum_steps * factor}
    return spec.model_copy(update=smaller)
