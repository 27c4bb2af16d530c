"""How long a run is: the optimizer steps that epochs come to over a training split."""

from jobs.contract.spec import TrainSpec


def count_steps_per_epoch(num_samples: int, global_batch_size: int, *, drop_last: bool) -> int:
    """Global batches in a training split, the incomplete last one included where it is kept."""
    num_whole, rest = divmod(num_samples, global_batch_size)
    return num_whole + (rest > 0 and not drop_last)


def length_in_steps(spec: TrainSpec, num_train_samples: int | None) -> int | None:
    """Optimizer steps of the whole run; None where the length is in epochs of a split whose size is not known."""
    if spec.num_epochs is None or spec.num_steps is not None:
        return spec.num_steps
    if num_train_samples is None:
        return None
    return spec.num_epochs * count_steps_per_epoch(num_train_samples, spec.global_batch_size, drop_last=spec.drop_last)
