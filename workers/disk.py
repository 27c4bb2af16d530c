"""Files that only grow are kept from filling the disk: what nobody reads any more is given back to the file system."""

import ctypes
import logging
import os
from pathlib import Path

logger = logging.getLogger(__name__)

_KEEP_SIZE, _PUNCH_HOLE = 0x01, 0x02  # of fallocate(2)
_libc = ctypes.CDLL(None, use_errno=True)


def give_back(path: Path, begin: int, end: int) -> bool:
    """Free the disk space of the bytes from `begin` to `end`, which read as zeros from then on.

    The file keeps its length, so its writer appends as before and nothing that it writes meanwhile is lost, as it
    could be by truncation. False where the file system cannot do it; the file then stays as it is.
    """
    with path.open("r+b") as file:
        offset, length = ctypes.c_int64(begin), ctypes.c_int64(end - begin)
        done: bool = _libc.fallocate(file.fileno(), _KEEP_SIZE | _PUNCH_HOLE, offset, length) == 0
    if not done:
        logger.warning("disk space of %s cannot be given back: %s", path, os.strerror(ctypes.get_errno()))
    return done
