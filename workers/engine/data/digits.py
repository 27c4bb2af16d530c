"""scikit-learn's handwritten digits: 1,797 grey images of 8x8 pixels, read from the file in its wheel."""

import hashlib

import numpy as np
import torch

from jobs.contract.catalog import DataKind, Target
from workers.engine.data.dataset import Dataset, Sizes, Split
from workers.engine.data.sklearn_files import find_file, shuffle

_NUM_TRAIN = 1437  # the other 360 are for evaluation
_MAX_PIXEL = 16.0


def load_digits(_sizes: Sizes) -> Dataset:
    """Pixels scaled to 0..1, split by a fixed permutation."""
    table = shuffle(np.loadtxt(find_file("digits", "digits.csv.gz"), delimiter=",", dtype=np.float32))
    images = torch.from_numpy(table[:, :-1] / _MAX_PIXEL).view(-1, 1, 8, 8)
    labels = torch.from_numpy(table[:, -1].astype(np.int64))
    return Dataset(
        kind=DataKind.IMAGES,
        target=Target.CLASS,
        revision=hashlib.sha256(table.tobytes()).hexdigest()[:16],
        sample_shape=(1, 8, 8),
        num_classes=10,
        train=Split(images[:_NUM_TRAIN], labels[:_NUM_TRAIN]),
        evaluation=Split(images[_NUM_TRAIN:], labels[_NUM_TRAIN:]),
    )
