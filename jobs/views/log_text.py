"""A piece of a log file: bounded, as text, and never through a link out of its folder."""

import codecs
import os
from dataclasses import dataclass
from pathlib import Path

_MOST_BYTES = 64 * 1024


@dataclass(frozen=True)
class LogPart:
    """`text` ends at the byte `offset` of the file, behind a whole character; something before it `is_cut` or not."""

    text: str
    offset: int
    is_cut: bool


def read_log(path: Path, offset: int | None) -> LogPart:
    """What follows `offset`, or the end of the file where that is None; never more than 64 KiB."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return LogPart("", 0, is_cut=False)
    with os.fdopen(descriptor, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        earliest = max(0, size - _MOST_BYTES)
        start = earliest if offset is None or offset > size else max(offset, earliest)
        file.seek(start)
        # No further than the size that was told: what is written meanwhile comes with the next piece.
        data = _whole_lines(file.read(size - start), cut_front=start == earliest and start > 0)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data)
    num_open = len(decoder.getstate()[0])  # bytes of a character that is being written
    return LogPart(text, size - num_open, is_cut=start == earliest and start > 0)


def _whole_lines(data: bytes, *, cut_front: bool) -> bytes:
    """Where the front was cut, begin with a whole line, and so with a whole character."""
    return data[data.find(b"\n") + 1 :] if cut_front else data
