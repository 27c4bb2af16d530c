"""A piece of a log file: bounded, as text, and never through a link out of its folder."""

import os
from dataclasses import dataclass
from pathlib import Path

_MOST_BYTES = 64 * 1024


@dataclass(frozen=True)
class LogPart:
    """`text` ends at the byte `offset` of the file; `is_cut` says that something before it was left out."""

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
        data = _whole_lines(file.read(_MOST_BYTES), cut_front=start == earliest and start > 0)
    return LogPart(data.decode(errors="replace"), size, is_cut=start == earliest and start > 0)


def _whole_lines(data: bytes, *, cut_front: bool) -> bytes:
    """Where the front was cut, begin with a whole line, and so with a whole character."""
    return data[data.find(b"\n") + 1 :] if cut_front else data
