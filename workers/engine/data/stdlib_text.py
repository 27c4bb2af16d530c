"""Python's own standard-library sources as bytes, for a language model without a download.

All `.py` files of the standard library except its tests and what is installed beside it (site-packages); one file in
ten is for evaluation, picked by a checksum of its name. The text of a split is cut into windows of context + 1 bytes,
each starting on the last byte of the one before it. Evaluation takes 256 windows spread evenly over its text, so that
it costs about a second on one core.
"""

import hashlib
import os
import sysconfig
import zlib
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from jobs.contract.catalog import DataKind, Target
from jobs.contract.errors import DataMissing
from workers.engine.data.dataset import Dataset, Sizes, Split

CONTEXT = 128  # bytes
NUM_EVAL_WINDOWS = 256
_VOCABULARY = 256
_EVAL_SHARE = 10  # one file in this many
_SKIPPED_FOLDERS = {"site-packages", "dist-packages", "test", "tests", "idle_test", "__pycache__"}


def load_stdlib_text(sizes: Sizes) -> Dataset:
    """Reads every source file once; the revision is a hash of names and contents, so it differs between Pythons."""
    context = sizes.sequence_length or CONTEXT
    root = Path(sysconfig.get_paths()["stdlib"])
    digest = hashlib.sha256()
    train, evaluation = bytearray(), bytearray()
    for name, content in _read_sources(root):
        digest.update(name.encode() + b"\0" + content)
        (train if zlib.crc32(name.encode()) % _EVAL_SHARE else evaluation).extend(content)
    if min(len(train), len(evaluation)) <= context:
        raise DataMissing(f"The data set stdlib-text needs Python's sources as .py files; {root} has too few.")
    eval_windows = cut_windows(evaluation, context)
    return Dataset(
        kind=DataKind.TOKENS,
        target=Target.NEXT_TOKEN,
        revision=digest.hexdigest()[:16],
        sample_shape=(context,),
        num_classes=_VOCABULARY,
        train=Split(cut_windows(train, context)),
        evaluation=Split(eval_windows[spread(len(eval_windows), NUM_EVAL_WINDOWS)]),
    )


def _read_sources(root: Path) -> Iterator[tuple[str, bytes]]:
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = sorted(set(subfolders) - _SKIPPED_FOLDERS)  # os.walk goes on with what is left here, in order
        for file in sorted(file for file in files if file.endswith(".py")):
            path = Path(folder, file)
            yield path.relative_to(root).as_posix(), path.read_bytes()


def cut_windows(text: bytearray, context: int) -> Tensor:
    """(number of windows, context + 1) of uint8; neighbours share one byte."""
    return torch.frombuffer(text, dtype=torch.uint8).unfold(0, context + 1, context).contiguous()


def spread(size: int, count: int) -> Tensor:
    """At most `count` indices, evenly over `size`."""
    count = min(size, count)
    return torch.arange(count) * size // count
