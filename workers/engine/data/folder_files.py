"""Reads a local folder's images or texts into memory; which files those are is told in `folders`."""

import hashlib
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps, UnidentifiedImageError
from torch import Tensor

from jobs.contract.catalog import DataKind, Target
from jobs.contract.errors import DataMissing
from workers.engine.data.dataset import Dataset, Sizes, Split
from workers.engine.data.stdlib_text import cut_windows
from workers.engine.folders import CONTEXT, IMAGE_SIZE, NUM_BYTES, Folder, is_for_evaluation, open_folder


def load_folder(name: str, sizes: Sizes) -> Dataset:
    """The data set `folder:NAME`, whole in memory; the revision is a hash of names and contents."""
    folder = open_folder(name)
    return _load_images(folder, sizes) if folder.classes else _load_text(folder, sizes)


def _load_images(folder: Folder, sizes: Sizes) -> Dataset:
    """Images in colour, cut and scaled to a square, as bytes."""
    size = sizes.image_size or IMAGE_SIZE
    digest = hashlib.sha256()
    images: dict[bool, list[Tensor]] = {True: [], False: []}
    labels: dict[bool, list[int]] = {True: [], False: []}
    for path, name in zip(folder.files, folder.relative_paths, strict=True):
        digest.update(name.encode() + b"\0" + path.read_bytes())
        images[is_for_evaluation(name)].append(_read_image(path, size))
        labels[is_for_evaluation(name)].append(folder.classes.index(path.parent.name))
    if not images[True] or not images[False]:
        raise DataMissing(f"The folder {folder.name} has too few images to keep some for evaluation; add more.")
    train, evaluation = (Split(torch.stack(images[key]), torch.tensor(labels[key])) for key in (False, True))
    return Dataset(
        kind=DataKind.IMAGES,
        target=Target.CLASS,
        revision=digest.hexdigest()[:16],
        sample_shape=(3, size, size),
        num_classes=len(folder.classes),
        train=train,
        evaluation=evaluation,
    )


def _read_image(path: Path, size: int) -> Tensor:
    """(3, size, size) of uint8."""
    try:
        with Image.open(path) as image:
            square = ImageOps.fit(image.convert("RGB"), (size, size), Image.Resampling.BILINEAR)
    except (UnidentifiedImageError, OSError) as error:
        raise DataMissing(f"The image {path.name} in the folder {path.parent.name} cannot be read.") from error
    return torch.from_numpy(np.array(square)).permute(2, 0, 1).contiguous()


def _load_text(folder: Folder, sizes: Sizes) -> Dataset:
    context = sizes.sequence_length or CONTEXT
    digest = hashlib.sha256()
    train, evaluation = bytearray(), bytearray()
    for path, name in zip(folder.files, folder.relative_paths, strict=True):
        content = path.read_bytes()
        digest.update(name.encode() + b"\0" + content)
        (evaluation if is_for_evaluation(name) else train).extend(content)
    if min(len(train), len(evaluation)) <= context:
        raise DataMissing(f"The folder {folder.name} has too little text to keep some of it for evaluation; add files.")
    return Dataset(
        kind=DataKind.TOKENS,
        target=Target.NEXT_TOKEN,
        revision=digest.hexdigest()[:16],
        sample_shape=(context,),
        num_classes=NUM_BYTES,
        train=Split(cut_windows(train, context)),
        evaluation=Split(cut_windows(evaluation, context)),
    )
