"""The compacted form of curves, once a run has ended: blocks of one series, and coarser levels of each block.

A block is a small head, then its columns, compressed together. Whole numbers (steps, and wall time in microseconds)
are differences in as few bytes as they fit; values are float32 where that is what they were. Bytes of equal weight
stand together, which is what makes floats compress. Nothing is rounded: what went in comes out, bit for bit.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobs.curves import Curve, Floats, Ints
from jobs.thinning import pick_extremes

BLOCK_POINTS = 16_384
LEVELED_POINTS = 1024  # a shorter block has no coarser levels
RATIOS = {"full": 1, "medium": 8, "coarse": 64}  # stored points for each one of a level, the finest level first

_ZLIB_LEVEL = 3
_HEAD = struct.Struct("<Icqcqc")  # number of points; type and first number of steps; of wall time; type of values
_MICROSECONDS = 1e6
_MOST_MICROSECONDS = 2**53  # beyond it a float cannot tell one from the next


@dataclass(frozen=True)
class Block:
    """A stretch of one series, encoded at each level; a level that it does not have is None."""

    first_step: int
    last_step: int
    last_wall_s: float
    num_points: int
    full: bytes
    medium: bytes | None
    coarse: bytes | None


def blocks_of(curve: Curve) -> Iterator[Block]:
    """The whole curve, block by block."""
    for begin in range(0, len(curve), BLOCK_POINTS):
        yield _block(curve[begin : begin + BLOCK_POINTS])


def _block(curve: Curve) -> Block:
    levels = {
        name: encode(curve[pick_extremes(curve.values, len(curve) // ratio)])
        for name, ratio in RATIOS.items()
        if ratio > 1 and len(curve) >= LEVELED_POINTS
    }
    return Block(
        first_step=int(curve.steps.min()),
        last_step=int(curve.steps.max()),
        last_wall_s=float(curve.wall_s.max()),
        num_points=len(curve),
        full=encode(curve),
        medium=levels.get("medium"),
        coarse=levels.get("coarse"),
    )


def encode(curve: Curve) -> bytes:
    """The compressed form of a curve of at least one point."""
    step_type, first_step, steps = _encode_ints(curve.steps)
    wall_type, first_wall, wall = _encode_wall(curve.wall_s)
    value_type, values = _encode_values(curve.values)
    head = _HEAD.pack(len(curve), step_type, first_step, wall_type, first_wall, value_type)
    return head + zlib.compress(steps + wall + values, _ZLIB_LEVEL)


def decode(payload: bytes | memoryview) -> Curve:
    """The curve; the inverse of `encode`."""
    data = bytes(payload)
    count, step_type, first_step, wall_type, first_wall, value_type = _HEAD.unpack_from(data)
    columns = _Columns(zlib.decompress(data[_HEAD.size :]))
    steps = _decode_ints(columns.take(step_type, count - 1), first_step)
    if wall_type == b"d":
        wall_s = columns.take(wall_type, count)
    else:
        wall_s = _decode_ints(columns.take(wall_type, count - 1), first_wall) / _MICROSECONDS
    return Curve(steps, wall_s, columns.take(value_type, count).astype(np.float64, copy=False))


class _Columns:
    """Takes one column after the other out of what was compressed."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._start = 0

    def take(self, kind: bytes, count: int) -> NDArray[Any]:
        """The next column, whose bytes of equal weight stand together."""
        dtype = np.dtype(f"<{kind.decode()}")
        size = count * dtype.itemsize
        planes = np.frombuffer(self._data, np.uint8, size, self._start).reshape(dtype.itemsize, count)
        self._start += size
        return np.ascontiguousarray(planes.T).view(dtype).reshape(count)


def _planes(array: NDArray[Any]) -> bytes:
    return array.view(np.uint8).reshape(len(array), array.itemsize).T.tobytes()


def _encode_ints(numbers: Ints) -> tuple[bytes, int, bytes]:
    """The type of the differences, the first number, and the differences."""
    differences = np.diff(numbers)  # may wrap around, and wraps back when it is added up
    low, high = int(differences.min(initial=0)), int(differences.max(initial=0))
    kind = next(code for code in "bhiq" if np.iinfo(code).min <= low and high <= np.iinfo(code).max)
    return kind.encode(), int(numbers[0]), _planes(differences.astype(f"<{kind}"))


def _decode_ints(differences: NDArray[Any], first: int) -> Ints:
    numbers = np.empty(len(differences) + 1, np.int64)
    numbers[0] = first
    np.cumsum(differences, dtype=np.int64, out=numbers[1:])
    numbers[1:] += first
    return numbers


def _encode_wall(wall_s: Floats) -> tuple[bytes, int, bytes]:
    """Microseconds as whole numbers where the seconds are that; as they are else."""
    rounded = np.rint(wall_s * _MICROSECONDS)
    if (np.abs(rounded) < _MOST_MICROSECONDS).all():
        microseconds = rounded.astype(np.int64)
        if _are_same(microseconds / _MICROSECONDS, wall_s):
            return _encode_ints(microseconds)
    return b"d", 0, _planes(wall_s.astype("<f8"))


def _encode_values(values: Floats) -> tuple[bytes, bytes]:
    with np.errstate(over="ignore", invalid="ignore"):
        short = values.astype("<f4")
    if _are_same(short.astype(np.float64), values):
        return b"f", _planes(short)
    return b"d", _planes(values.astype("<f8"))


def _are_same(one: Floats, other: Floats) -> bool:
    """Bit for bit: NaN is NaN, and a negative zero is not zero."""
    return bool((one.view(np.int64) == np.ascontiguousarray(other).view(np.int64)).all())
