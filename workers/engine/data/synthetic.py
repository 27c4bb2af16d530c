"""Made-up images, text and labelled sequences of any size: for throughput only.

A small pool of samples from a fixed seed comes round and round, so that an epoch is long and memory small. No loss
on them is ever shown.
"""

import torch
from torch import Tensor

from jobs.contract.catalog import DataKind, Target
from workers.engine.data.dataset import Dataset, Sizes, Split

_SEED = 0
_NUM_TRAIN = 65_536
_POOL_SIZE = 64
_NUM_IMAGE_CLASSES = 1000
_IMAGE_SIZE = 224
_VOCABULARY = 30_000  # not above any model's own, so that a model keeps its size
_SEQUENCE_LENGTH = 128


def make_images(sizes: Sizes) -> Dataset:
    """Normally distributed pixels (3, size, size) and classes, as ImageNet has them."""
    size = sizes.image_size or _IMAGE_SIZE
    shape = (3, size, size)
    generator = torch.Generator().manual_seed(_SEED)
    images = torch.randn(_POOL_SIZE, *shape, generator=generator)
    labels = torch.randint(_NUM_IMAGE_CLASSES, (_POOL_SIZE,), generator=generator)
    return _dataset(DataKind.IMAGES, shape, _NUM_IMAGE_CLASSES, images, labels)


def make_tokens(sizes: Sizes) -> Dataset:
    """Evenly distributed tokens, predicted one ahead."""
    length = sizes.sequence_length or _SEQUENCE_LENGTH
    generator = torch.Generator().manual_seed(_SEED)
    tokens = torch.randint(_VOCABULARY, (_POOL_SIZE, length + 1), generator=generator, dtype=torch.int32)
    return _dataset(DataKind.TOKENS, (length,), _VOCABULARY, tokens, None)


def make_sequences(sizes: Sizes) -> Dataset:
    """Evenly distributed tokens with one of two classes for each sequence."""
    length = sizes.sequence_length or _SEQUENCE_LENGTH
    generator = torch.Generator().manual_seed(_SEED)
    tokens = torch.randint(_VOCABULARY, (_POOL_SIZE, length), generator=generator, dtype=torch.int32)
    labels = torch.randint(2, (_POOL_SIZE,), generator=generator)
    return _dataset(DataKind.SEQUENCES, (length,), 2, tokens, labels)


def _dataset(
    kind: DataKind, shape: tuple[int, ...], num_classes: int, samples: Tensor, labels: Tensor | None
) -> Dataset:
    pool = Split(samples, labels)
    return Dataset(
        kind=kind,
        target=Target.CLASS if labels is not None else Target.NEXT_TOKEN,
        revision=f"synthetic-{_SEED}",
        sample_shape=shape,
        num_classes=num_classes,
        train=Split(samples, labels, num_repeats=_NUM_TRAIN // _POOL_SIZE),
        evaluation=pool,
        vocabulary=_VOCABULARY if kind is DataKind.SEQUENCES else None,
        is_synthetic=True,
    )
