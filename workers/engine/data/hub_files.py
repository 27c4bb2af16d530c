"""Reads a registered data set of the Hugging Face hub into memory; which there are is told in `workers.engine.hub`."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from jobs.contract.catalog import DataKind
from jobs.contract.errors import DataMissing
from workers.engine.data.dataset import Dataset, Sizes, Split
from workers.engine.data.stdlib_text import NUM_EVAL_WINDOWS, cut_windows, spread
from workers.engine.hub import HUB, HubDataset

_NUM_BYTES = 256
_PADDING = 0  # in sequences, where byte b is token b + 1


def load_from_hub(name: str, sizes: Sizes) -> Dataset:
    """The data set at its pinned revision, from the cache or the network; raises `DataMissing` without either."""
    source = HUB[name]
    splits = _open(source)
    read = {DataKind.IMAGES: _read_images, DataKind.TOKENS: _read_text, DataKind.SEQUENCES: _read_sequences}
    return read[source.info.gives](source, splits["train"], splits[source.evaluation_split], sizes)


def _open(source: HubDataset) -> Mapping[str, Any]:
    try:
        opened: Mapping[str, Any] = datasets.load_dataset(
            source.repository, source.configuration, revision=source.revision
        )
    except (OSError, ValueError) as error:  # the hub's own errors and those of its connections are kinds of these
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise DataMissing(
            f"The data set {source.info.name} is neither in this worker's cache nor to be had from the hub ({reason})."
        ) from error
    _require_pinned(source, opened["train"])
    return opened


def _require_pinned(source: HubDataset, split: Any) -> None:
    """Without a network the library takes whatever commit came last into its cache, and only logs it."""
    folders = {part for file in split.cache_files for part in Path(file["filename"]).parts}
    if source.revision not in folders and not Path(source.repository).is_absolute():
        raise DataMissing(
            f"This worker's cache holds {source.info.name} at another commit than {source.revision[:12]}, and the hub "
            "cannot be reached. Let the worker reach it once, or delete the cached one."
        )


def _read_images(source: HubDataset, train: Any, evaluation: Any, sizes: Sizes) -> Dataset:
    size = sizes.image_size or source.info.image_size
    assert size is not None  # noqa: S101 - each registered one has its own

    def read(split: Any) -> Split:
        images = torch.stack([_as_square(image, size) for image in split[source.inputs]])
        return Split(images, torch.tensor(split[source.labels][:]))

    num_classes = train.features[source.labels].num_classes
    return _dataset(source, (3, size, size), num_classes, read(train), read(evaluation))


def _as_square(image: Image.Image, size: int) -> Tensor:
    """(3, size, size) of uint8."""
    square = ImageOps.fit(image.convert("RGB"), (size, size), Image.Resampling.BILINEAR)
    return torch.from_numpy(np.array(square)).permute(2, 0, 1).contiguous()


def _read_text(source: HubDataset, train: Any, evaluation: Any, sizes: Sizes) -> Dataset:
    context = sizes.sequence_length or source.info.sequence_length
    assert context is not None  # noqa: S101 - each registered one has its own
    windows, eval_windows = (
        cut_windows(bytearray("".join(split[source.inputs]).encode()), context) for split in (train, evaluation)
    )
    chosen = eval_windows[spread(len(eval_windows), NUM_EVAL_WINDOWS)]
    return _dataset(source, (context,), _NUM_BYTES, Split(windows), Split(chosen))


def _read_sequences(source: HubDataset, train: Any, evaluation: Any, sizes: Sizes) -> Dataset:
    length = sizes.sequence_length or source.info.sequence_length
    assert length is not None  # noqa: S101 - each registered one has its own

    def read(split: Any) -> Split:
        return Split(_as_tokens(split[source.inputs], length), torch.tensor(split[source.labels][:]))

    num_classes = train.features[source.labels].num_classes
    return _dataset(source, (length,), num_classes, read(train), read(evaluation))


def _as_tokens(texts: Iterable[str], length: int) -> Tensor:
    """(N, length) of int16: each text's bytes plus one, cut at the end or filled up."""
    rows = [text.encode()[:length] for text in texts]
    tokens = torch.full((len(rows), length), _PADDING, dtype=torch.int16)
    for index, row in enumerate(rows):
        if row:
            tokens[index, : len(row)] = torch.frombuffer(bytearray(row), dtype=torch.uint8).short() + 1
    return tokens


def _dataset(source: HubDataset, shape: tuple[int, ...], num_classes: int, train: Split, evaluation: Split) -> Dataset:
    is_filled_up = source.info.gives is DataKind.SEQUENCES
    return Dataset(
        kind=source.info.gives,
        target=source.info.target,
        revision=source.revision[:16],
        sample_shape=shape,
        num_classes=num_classes,
        train=train,
        evaluation=evaluation,
        vocabulary=_NUM_BYTES + 1 if is_filled_up else None,
        padding=_PADDING if is_filled_up else None,
    )
