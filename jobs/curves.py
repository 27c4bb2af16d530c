"""The packed form of curves while a run lives: a few frames, each with one axis of steps and any number of series.

A payload is a JSON header on one line, then for each frame: the steps (int64; left out where they go on by one
stride), the wall seconds (float64), each series' values (float64), and which flush told which points, compressed
(left out where one flush told all of them). Arrays are little-endian; NaN and infinity are kept as they are.
"""

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobs.contract.events import Points

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Parts = tuple[tuple[int, int], ...]  # sequence of a flush, and how many points of each series it told

# Seconds of training are kept to the microsecond: what is beyond it is noise, and noise cannot be compressed.
WALL_DIGITS = 6


@dataclass(frozen=True)
class Frame:
    """Series over the same steps; every array has the same length."""

    steps: Ints
    wall_s: Floats  # seconds since the first step began
    series: dict[str, Floats]
    parts: Parts = ()  # in order; empty where one flush told all of it

    def __len__(self) -> int:
        return len(self.steps)


@dataclass(frozen=True)
class Curve:
    """One series of one attempt, in the order of its steps."""

    steps: Ints
    wall_s: Floats
    values: Floats

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, chosen: Any) -> "Curve":
        return Curve(self.steps[chosen], self.wall_s[chosen], self.values[chosen])


def frames_from_points(events: Iterable[Points]) -> list[Frame]:
    """The engine's events as frames, as few as keep the points of each series in their order."""
    return gather(
        Frame(
            np.asarray(event.steps, dtype=np.int64),
            _microseconds(event.wall_s),
            {name: np.asarray(values, dtype=np.float64) for name, values in event.series.items()},
        )
        for event in events
    )


def _microseconds(wall_s: Sequence[float]) -> Floats:
    return np.asarray(wall_s, dtype=np.float64).round(WALL_DIGITS)


def gather(frames: Iterable[Frame]) -> list[Frame]:
    """Frames with the same series become one, unless that would change the order of some series' points."""
    groups: list[list[Frame]] = []
    for frame in frames:
        group = _group_of(frame, groups)
        if group is None:
            groups.append([frame])
        else:
            group.append(frame)
    return [_join_frames(group) for group in groups]


def _group_of(frame: Frame, groups: list[list[Frame]]) -> list[Frame] | None:
    for group in reversed(groups):
        if group[0].series.keys() == frame.series.keys():
            return group
        if group[0].series.keys() & frame.series.keys():
            return None
    return None


def _join_frames(frames: list[Frame]) -> Frame:
    if len(frames) == 1:
        return frames[0]
    return Frame(
        steps=np.concatenate([frame.steps for frame in frames]),
        wall_s=np.concatenate([frame.wall_s for frame in frames]),
        series={name: np.concatenate([frame.series[name] for frame in frames]) for name in frames[0].series},
        parts=tuple(part for frame in frames for part in frame.parts),
    )


def count_points(frames: Iterable[Frame]) -> int:
    """How many values the frames hold, of all series together."""
    return sum(len(frame) * len(frame.series) for frame in frames)


def last_step_of(frames: Iterable[Frame]) -> int:
    """The highest step in any of the frames."""
    return max(int(frame.steps.max()) for frame in frames)


def pack(frames: Iterable[Frame]) -> bytes:
    """The payload of some frames."""
    header, body = [], []
    for frame in frames:
        entry: dict[str, Any] = {"n": len(frame), "series": list(frame.series)}
        stride = _stride(frame.steps)
        if stride is None:
            body.append(frame.steps.astype("<i8").tobytes())
        else:
            entry["steps"] = [int(frame.steps[0]), stride]
        body += [array.astype("<f8", copy=False).tobytes() for array in (frame.wall_s, *frame.series.values())]
        if frame.parts:
            body.append(_pack_parts(frame.parts))
            entry["parts"] = len(body[-1])
        header.append(entry)
    return json.dumps(header, separators=(",", ":")).encode() + b"\n" + b"".join(body)


def _stride(steps: Ints) -> int | None:
    """The distance of the steps where it is the same everywhere."""
    if len(steps) < 2:
        return 1 if len(steps) else None
    stride = int(steps[1]) - int(steps[0])
    return stride if (np.diff(steps) == stride).all() else None


def _pack_parts(parts: Parts) -> bytes:
    sequences, counts = np.array(parts, dtype=np.int64).T
    return zlib.compress(np.concatenate([np.diff(sequences, prepend=0), counts]).astype("<u4").tobytes())


def _unpack_parts(data: bytes) -> Parts:
    sequences, counts = np.frombuffer(zlib.decompress(data), "<u4").astype(np.int64).reshape(2, -1)
    return tuple(zip(np.cumsum(sequences).tolist(), counts.tolist(), strict=True))


def unpack(payload: bytes | memoryview) -> list[Frame]:
    """The frames of a payload; the inverse of `pack`."""
    data = bytes(payload)
    start = data.index(b"\n") + 1
    frames = []
    for entry in json.loads(data[:start]):
        count, names = entry["n"], entry["series"]
        if "steps" in entry:
            first, stride = entry["steps"]
            steps = first + stride * np.arange(count, dtype=np.int64)
        else:
            steps = np.frombuffer(data, "<i8", count, start)
            start += 8 * count
        floats = np.frombuffer(data, "<f8", count * (1 + len(names)), start).reshape(-1, count)
        start += 8 * count * (1 + len(names))
        num_bytes = entry.get("parts", 0)
        parts = _unpack_parts(data[start : start + num_bytes]) if num_bytes else ()
        start += num_bytes
        frames.append(Frame(steps, floats[0], dict(zip(names, floats[1:], strict=True)), parts))
    return frames


def series_in(head: bytes | memoryview) -> list[str]:
    """The names in a payload's first line, in their order."""
    return [name for entry in json.loads(bytes(head).split(b"\n", 1)[0]) for name in entry["series"]]


def merge(chunks: Iterable[tuple[int, bytes | memoryview]]) -> bytes:
    """One payload out of several, each with the sequence of its last flush; it still tells the flushes apart."""
    return pack(gather(_with_parts(frame, sequence) for sequence, payload in chunks for frame in unpack(payload)))


def _with_parts(frame: Frame, sequence: int) -> Frame:
    return frame if frame.parts else Frame(frame.steps, frame.wall_s, frame.series, ((sequence, len(frame)),))


def frames_after(payload: bytes | memoryview, sequence: int) -> list[Frame]:
    """The frames of a payload without what this flush and those before it told."""
    return [left for frame in unpack(payload) if len(left := _cut_after(frame, sequence))]


def _cut_after(frame: Frame, sequence: int) -> Frame:
    seen = sum(count for known, count in frame.parts if known <= sequence)
    if not seen:
        return frame
    parts = tuple(part for part in frame.parts if part[0] > sequence)
    series = {name: values[seen:] for name, values in frame.series.items()}
    return Frame(frame.steps[seen:], frame.wall_s[seen:], series, parts)


def join(frames: Iterable[Frame], name: str) -> Curve:
    """One series out of all frames that have it."""
    parts = [frame for frame in frames if name in frame.series]
    return concatenate([Curve(part.steps, part.wall_s, part.series[name]) for part in parts])


def concatenate(curves: Sequence[Curve]) -> Curve:
    """One curve after the other."""
    if not curves:
        return Curve(np.empty(0, np.int64), np.empty(0), np.empty(0))
    if len(curves) == 1:
        return curves[0]
    return Curve(
        steps=np.concatenate([curve.steps for curve in curves]),
        wall_s=np.concatenate([curve.wall_s for curve in curves]),
        values=np.concatenate([curve.values for curve in curves]),
    )
