"""Data sets in local folders: each sub-folder NAME of the folder in PITWALL_DATA is offered as `folder:NAME`.

A job names it, never a path. Either NAME holds one folder of images per class, or text files at any depth. One file in
ten is for evaluation, picked by a checksum of its name. Listing reads names and sizes only; imports no torch.
"""

import hashlib
import os
import re
import zlib
from dataclasses import dataclass, field
from pathlib import Path

from jobs.contract.catalog import DataKind, DatasetInfo, Target
from jobs.contract.errors import DataMissing

ROOT_VARIABLE = "PITWALL_DATA"
PREFIX = "folder:"
IMAGE_SIZE = 224  # pixels, where a spec asks for no other
CONTEXT = 128  # bytes
NUM_BYTES = 256  # the vocabulary of text
_IMAGE_SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".webp"}
_TEXT_SUFFIXES = {".txt", ".md", ".rst", ".py", ".json", ".csv"}
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,79}")
_EVAL_SHARE = 10  # one file in this many


@dataclass(frozen=True)
class Folder:
    """One data set's files: images with their class, or texts (class is None), in the order of their names."""

    name: str
    root: Path
    files: list[Path]
    classes: list[str]  # empty for text

    @property
    def info(self) -> DatasetInfo:
        """The data set as the catalog has it."""
        if not self.classes:
            return DatasetInfo(
                name=PREFIX + self.name,
                description=f"{len(self.files):,} text files, as bytes",
                gives=DataKind.TOKENS,
                target=Target.NEXT_TOKEN,
                num_classes=NUM_BYTES,
                sequence_length=CONTEXT,
                revision=self.listing_hash,
            )
        return DatasetInfo(
            name=PREFIX + self.name,
            description=f"{len(self.files):,} images of {len(self.classes):,} classes",
            gives=DataKind.IMAGES,
            num_train_samples=sum(not is_for_evaluation(path) for path in self.relative_paths),
            num_classes=len(self.classes),
            image_size=IMAGE_SIZE,
            revision=self.listing_hash,
        )

    @property
    def relative_paths(self) -> list[str]:
        """The files' names from the folder on, with forward slashes."""
        return [path.relative_to(self.root).as_posix() for path in self.files]

    @property
    def listing_hash(self) -> str:
        """Of names and sizes: tells folders apart without reading them. A run's revision is of the content."""
        listed = zip(self.relative_paths, self.files, strict=True)
        text = "\n".join(f"{name} {path.stat().st_size}" for name, path in listed)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Listing:
    """What the folders offer, and a sentence about each one that offers nothing."""

    infos: list[DatasetInfo] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def list_folders() -> Listing:
    """All data sets under PITWALL_DATA; nothing where it is not set."""
    listing = Listing()
    root = os.environ.get(ROOT_VARIABLE)
    if not root:
        return listing
    if not Path(root).is_dir():
        listing.problems.append(f"{ROOT_VARIABLE} names the folder {root}, which does not exist.")
        return listing
    for folder in sorted(path for path in Path(root).iterdir() if path.is_dir()):
        try:
            listing.infos.append(open_folder(folder.name).info)
        except (DataMissing, OSError) as error:
            listing.problems.append(str(error))
    return listing


def open_folder(name: str) -> Folder:
    """The files of the data set `folder:NAME`; raises `DataMissing` where there are none."""
    root = os.environ.get(ROOT_VARIABLE)
    if not root:
        raise DataMissing(f"The data set {PREFIX}{name} needs {ROOT_VARIABLE} to name the folder that it is in.")
    folder = Path(root) / name
    if not _NAME.fullmatch(name) or not folder.is_dir():
        raise DataMissing(
            f"There is no data set {PREFIX}{name}: the folder that {ROOT_VARIABLE} names has no such folder."
        )
    images = [path for path in sorted(folder.glob("*/*")) if path.suffix.lower() in _IMAGE_SUFFIXES]
    if images:
        return Folder(name, folder, images, sorted({path.parent.name for path in images}))
    texts = [path for path in sorted(folder.rglob("*")) if path.suffix.lower() in _TEXT_SUFFIXES and path.is_file()]
    if not texts:
        raise DataMissing(f"The folder {name} holds neither images in one folder per class nor text files.")
    return Folder(name, folder, texts, [])


def is_for_evaluation(relative_path: str) -> bool:
    """Whether a file belongs to the evaluation split."""
    return zlib.crc32(relative_path.encode()) % _EVAL_SHARE == 0
