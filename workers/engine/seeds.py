"""Every random stream of a run, from one seed."""

import random

import numpy as np
import torch


def seed_everything(seed: int) -> None:
    """Python, NumPy and torch (CPU and all GPUs); the data's order has a generator of its own (`order.py`)."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def seed_rank(seed: int, rank: int) -> None:
    """A stream of its own for each rank once the weights are made: else all ranks would draw the same dropout.

    The first rank's goes on as it is, so that a run of one process is the same with and without ranks.
    """
    if rank:
        torch.manual_seed((seed << 16) + rank)
