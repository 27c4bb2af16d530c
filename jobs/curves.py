"""The packed form of curves: a few frames, each with one axis of steps and any number of series along it.

A payload is a JSON header on one line, then little-endian arrays: for each frame the steps (int64), the wall seconds
(float64) and each series' values (float64). NaN and infinity are kept as they are.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jobs.contract.events import Points

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Frame:
    """Series over the same steps; every array has the same length."""

    steps: Ints
    wall_s: Floats  # seconds since the first step began
    series: dict[str, Floats]

    def __len__(self) -> int:
        return len(self.steps)


@dataclass(frozen=True)
class Curve:
    """One series of one attempt, in the order of its steps."""

    steps: Ints
    wall_s: Floats
    values: Floats


def frames_from_points(events: Iterable[Points]) -> list[Frame]:
    """The engine's events as frames, one for each set of series."""
    groups: dict[tuple[str, ...], list[Points]] = {}
    for event in events:
        groups.setdefault(tuple(event.series), []).append(event)
    return [_frame(names, group) for names, group in groups.items()]


def _frame(names: tuple[str, ...], events: list[Points]) -> Frame:
    return Frame(
        steps=np.concatenate([np.asarray(event.steps, dtype=np.int64) for event in events]),
        wall_s=np.concatenate([np.asarray(event.wall_s, dtype=np.float64) for event in events]),
        series={
            name: np.concatenate([np.asarray(event.series[name], dtype=np.float64) for event in events])
            for name in names
        },
    )


def pack(frames: list[Frame]) -> bytes:
    """The payload of some frames."""
    header = [{"n": len(frame), "series": list(frame.series)} for frame in frames]
    arrays = [array for frame in frames for array in (frame.steps, frame.wall_s, *frame.series.values())]
    head = json.dumps(header, separators=(",", ":")).encode() + b"\n"
    return head + b"".join(array.astype(array.dtype.newbyteorder("<")).tobytes() for array in arrays)


def unpack(payload: bytes | memoryview) -> list[Frame]:
    """The frames of a payload; the inverse of `pack`."""
    data = bytes(payload)
    start = data.index(b"\n") + 1
    frames = []
    for entry in json.loads(data[:start]):
        count, names = entry["n"], entry["series"]
        steps = np.frombuffer(data, "<i8", count, start)
        floats = np.frombuffer(data, "<f8", count * (1 + len(names)), start + 8 * count).reshape(-1, count)
        frames.append(Frame(steps, floats[0], dict(zip(names, floats[1:], strict=True))))
        start += 8 * count * (2 + len(names))
    return frames


def join(frames: Iterable[Frame], name: str) -> Curve:
    """One series out of all frames that have it."""
    parts = [frame for frame in frames if name in frame.series]
    return concatenate([Curve(part.steps, part.wall_s, part.series[name]) for part in parts])


def concatenate(curves: Sequence[Curve]) -> Curve:
    """One curve after the other."""
    if not curves:
        return Curve(np.empty(0, np.int64), np.empty(0), np.empty(0))
    return Curve(
        steps=np.concatenate([curve.steps for curve in curves]),
        wall_s=np.concatenate([curve.wall_s for curve in curves]),
        values=np.concatenate([curve.values for curve in curves]),
    )
