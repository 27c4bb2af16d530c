"""A log file on a page: bounded pieces of it, never through a link; and what is found there."""

import codecs
import os
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

_MOST_BYTES = 64 * 1024
_AROUND_BYTES = 16 * 1024  # on either side of a line that was found, and of that line itself
_MOST_HITS = 1000
_SEARCH_S = 1.0
_LINES_BETWEEN_LOOKS = 2048  # at the clock


@dataclass(frozen=True)
class LogPart:
    """`text` ends at the byte `offset` of the file, behind a whole character; something before it `is_cut` or not."""

    text: str
    offset: int
    is_cut: bool


@dataclass(frozen=True)
class LogPlace:
    """A line that was found, and the lines around it."""

    before: str
    line: str
    after: str


@dataclass(frozen=True)
class LogHits:
    """Lines that have what was looked for: how many, and the last 1,000 of them, in order."""

    num_found: int
    hits: list[tuple[int, int]]  # the line's number from 1, and the byte where it begins
    has_gap: bool  # the middle of a log that grew too long is given up; its lines are not counted
    is_whole: bool  # False: time ran out, and what comes later in the log was not searched


NOTHING_FOUND = LogHits(0, [], has_gap=False, is_whole=True)


def read_log(path: Path, offset: int | None) -> LogPart:
    """What follows `offset`, or the end of the file where that is None; never more than 64 KiB."""
    file = _open(path)
    if file is None:
        return LogPart("", 0, is_cut=False)
    with file:
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


def _open(path: Path) -> BinaryIO | None:
    try:
        return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb")
    except OSError:
        return None


def _whole_lines(data: bytes, *, cut_front: bool) -> bytes:
    """Where the front was cut, begin with a whole line, and so with a whole character."""
    return data[data.find(b"\n") + 1 :] if cut_front else data


def read_log_around(path: Path, offset: int) -> LogPlace:
    """The line that begins at a byte, and whole lines on either side of it; never more than 48 KiB."""
    file = _open(path)
    if file is None:
        return LogPlace("", "", "")
    with file:
        offset = min(offset, os.fstat(file.fileno()).st_size)
        start = max(0, offset - _AROUND_BYTES)
        file.seek(start)
        before = _whole_lines(file.read(offset - start), cut_front=start > 0)
        line = file.readline(_AROUND_BYTES)
        after = file.read(_AROUND_BYTES)
    return LogPlace(_plain(before), _plain(line), _plain(after[: after.rfind(b"\n") + 1] or after))


def _plain(data: bytes) -> str:
    """As text, without the zeros that stand where the middle of a log was given up."""
    return data.replace(b"\0", b"").decode(errors="replace")


def find_in_log(path: Path, words: str, time_s: float = _SEARCH_S) -> LogHits:
    """The lines of the whole log that have `words`, in small or capital letters; gives up after `time_s`."""
    file = _open(path)
    if file is None or not words:
        return NOTHING_FOUND
    wanted, deadline = words.lower(), time.monotonic() + time_s
    hits: deque[tuple[int, int]] = deque(maxlen=_MOST_HITS)
    num_found, is_whole = 0, True
    with file:
        stretches = _stretches(file)
        for number, (offset, line) in enumerate(_lines(file, stretches), start=1):
            if wanted in line.decode(errors="replace").lower():
                num_found += 1
                hits.append((number, offset))
            if number % _LINES_BETWEEN_LOOKS == 0 and time.monotonic() > deadline:
                is_whole = False
                break
    return LogHits(num_found, list(hits), has_gap=len(stretches) > 1, is_whole=is_whole)


def _stretches(file: BinaryIO) -> list[tuple[int, int]]:
    """Where the file has data: the beginning and the end of each stretch, without the hole where its middle was."""
    size, end, found = os.fstat(file.fileno()).st_size, 0, []
    while end < size:
        try:
            begin = os.lseek(file.fileno(), end, os.SEEK_DATA)
        except OSError:  # nothing but a hole until the end
            break
        end = min(size, os.lseek(file.fileno(), begin, os.SEEK_HOLE))
        found.append((begin, end))
    os.lseek(file.fileno(), 0, os.SEEK_SET)  # where `file`, which does not know of these moves, believes to be
    return found


def _lines(file: BinaryIO, stretches: list[tuple[int, int]]) -> Iterator[tuple[int, bytes]]:
    """Every line with the byte where it begins."""
    for begin, end in stretches:
        file.seek(begin)
        while begin < end and (line := file.readline(end - begin)):
            yield begin, line
            begin += len(line)
