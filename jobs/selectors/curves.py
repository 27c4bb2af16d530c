"""Curves: read from their packed chunks, cut to a range, and thinned to what a plot can show."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Final

import numpy as np
from django.db.models import BinaryField, Q
from django.db.models.functions import Substr
from numpy.typing import NDArray
from tsdownsample import MinMaxLTTBDownsampler

from jobs.curves import Curve, Floats, Frame, concatenate, join, unpack
from jobs.models import Attempt, CurveChunk, Job

FULL: Final = "full"  # every stored point
THINNED: Final = "minmaxlttb"  # chosen points, each of them a stored one

# A thinned curve keeps both ends and its extremes, so fewer points than this cannot be asked for.
MIN_POINTS = 5

# A chunk's header names its series in its first line; this many bytes hold that line many times over.
_HEAD_BYTES = 8192

_THINNER = MinMaxLTTBDownsampler()  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class CurveView:
    """One series of one attempt, ready to plot; the lists are equally long, and `y` may hold NaN and infinity."""

    series: str
    x: list[int]  # optimizer steps, from 1
    wall_s: list[float]  # seconds since the first step began
    y: list[float]
    level: str  # FULL or THINNED
    num_points_total: int  # stored points in the range, before thinning
    seams: list[int] = field(default_factory=list)  # last steps taken from an attempt before another went on


@dataclass(frozen=True)
class Stretch:
    """A part of a curve: an attempt's points up to a step, all of them where that is None."""

    attempt_id: int
    last_step: int | None


@dataclass(frozen=True)
class ChunkView:
    """One stored flush, as the live page hands it on."""

    attempt_id: int
    sequence: int
    frames: list[Frame]


def empty_curve(series: str) -> CurveView:
    """What there is to see of a series that has no points."""
    return CurveView(series, [], [], [], FULL, 0)


def shown_attempts(job: Job) -> list[Attempt]:
    """The attempts whose curve is the job's: its last one, with what it inherited, if there is any."""
    return [job.last_attempt] if job.last_attempt else []


def lineages(attempts: Iterable[Attempt]) -> dict[int, list[Stretch]]:
    """For each attempt by its id, the stretches that make up its curve, the oldest first; its own is the last.

    An attempt that went on from a checkpoint inherits the points up to that step. One query for each time that one
    of them went on, none where none did.
    """
    lines = {attempt.pk: [Stretch(attempt.pk, None)] for attempt in attempts}
    open_ends = {attempt.pk: (attempt.resumed_from_id, attempt.resumed_at_step) for attempt in attempts}
    while open_ends := {pk: end for pk, end in open_ends.items() if end[0] is not None}:
        for pk, (origin, step) in open_ends.items():
            lines[pk].insert(0, Stretch(origin or 0, step))
        origins = Attempt.objects.in_bulk({origin for origin, _step in open_ends.values() if origin})
        open_ends = {
            pk: (origins[origin].resumed_from_id, origins[origin].resumed_at_step)
            for pk, (origin, _step) in open_ends.items()
            if origin in origins
        }
    return lines


def series_names(attempt: Attempt) -> list[str]:
    """The series that have points, in the order in which they first appeared; reads headers only."""
    ids = [stretch.attempt_id for stretch in lineages([attempt])[attempt.pk]]
    heads = (
        CurveChunk.objects.filter(attempt_id__in=ids)
        .order_by("attempt_id", "sequence")
        .values_list(Substr("payload", 1, _HEAD_BYTES, output_field=BinaryField()), flat=True)
    )
    frames = [frame for head in heads for frame in json.loads(bytes(head).split(b"\n", 1)[0])]
    return list(dict.fromkeys(name for frame in frames for name in frame["series"]))


def read_curve(
    attempt: Attempt, series: str, *, max_points: int | None = None, x_from: int | None = None, x_to: int | None = None
) -> CurveView:
    """One series between two steps (both included), thinned to about `max_points`.

    Chunks outside the range are not read. Raises ValueError where `max_points` is less than `MIN_POINTS`.
    """
    curves = read_curves([attempt], series, max_points=max_points, x_from=x_from, x_to=x_to)
    return curves[attempt.pk]


def read_curves(
    attempts: Iterable[Attempt],
    series: str,
    *,
    max_points: int | None = None,
    x_from: int | None = None,
    x_to: int | None = None,
) -> dict[int, CurveView]:
    """The same series of several attempts by their ids, in one query; see `read_curve`."""
    lines = lineages(attempts)
    chunks = CurveChunk.objects.filter(attempt_id__in={s.attempt_id for line in lines.values() for s in line})
    if all(len(line) == 1 for line in lines.values()):  # else the range begins where the time before it is known
        chunks = chunks.filter(first_step__lte=x_to) if x_to is not None else chunks
        chunks = chunks.filter(last_step__gte=x_from) if x_from is not None else chunks
    frames: dict[int, list[Frame]] = defaultdict(list)
    if lines:
        for attempt_id, payload in chunks.order_by("attempt_id", "sequence").values_list("attempt_id", "payload"):
            frames[attempt_id].extend(unpack(payload))
    return {
        pk: view_curve(_between(_join_line(line, frames, series), x_from, x_to), series, max_points, _seams(line))
        for pk, line in lines.items()
    }


def wall_before(attempt: Attempt) -> float:
    """Seconds of training in the stretches before the attempt's own: its points' wall time counts from there."""
    line = lineages([attempt])[attempt.pk][:-1]
    payloads = CurveChunk.objects.filter(attempt_id__in=[stretch.attempt_id for stretch in line])
    frames: dict[int, list[Frame]] = defaultdict(list)
    for attempt_id, payload in payloads.values_list("attempt_id", "payload") if line else []:
        frames[attempt_id].extend(unpack(payload))
    return sum(_wall_at_end(stretch, frames[stretch.attempt_id]) for stretch in line)


def _join_line(line: Sequence[Stretch], frames: Mapping[int, list[Frame]], series: str) -> Curve:
    """The stretches of a curve one after the other, in steps and in time."""
    wall_s, curves = 0.0, []
    for stretch in line:
        own = _between(join(frames[stretch.attempt_id], series), None, stretch.last_step)
        curves.append(Curve(own.steps, own.wall_s + wall_s, own.values))
        wall_s += _wall_at_end(stretch, frames[stretch.attempt_id])
    return concatenate(curves)


def _wall_at_end(stretch: Stretch, frames: Iterable[Frame]) -> float:
    """When the last step of a stretch was taken, by the attempt's own clock; 0 where no point tells."""
    last = np.inf if stretch.last_step is None else stretch.last_step
    return max((float(frame.wall_s[frame.steps <= last].max(initial=0.0)) for frame in frames), default=0.0)


def _seams(line: Sequence[Stretch]) -> list[int]:
    return [stretch.last_step for stretch in line if stretch.last_step is not None]


def view_curve(curve: Curve, series: str, max_points: int | None = None, seams: Sequence[int] = ()) -> CurveView:
    """A curve as lists, thinned where it has more than `max_points` points."""
    total = len(curve.steps)
    level = FULL
    if max_points is not None and max_points < MIN_POINTS:
        raise ValueError(f"max_points must be at least {MIN_POINTS}")
    if max_points is not None and total > max_points:
        kept = thin(curve.values, max_points)
        curve = Curve(curve.steps[kept], curve.wall_s[kept], curve.values[kept])
        level = THINNED
    x, wall_s, y = curve.steps.tolist(), curve.wall_s.tolist(), curve.values.tolist()
    return CurveView(series, x, wall_s, y, level, total, list(seams))


def thin(values: Floats, max_points: int) -> NDArray[np.intp]:
    """Indices of the points that show the shape of `values`, in order: MinMaxLTTB, arXiv:2305.00332.

    Points are chosen, never averaged, so that a spike stays as high as it was; the lowest and the highest point are
    always among them. Where values are not finite, the ends of each such stretch are kept on top of `max_points`,
    so that a plot breaks where the values did.
    """
    finite = np.flatnonzero(np.isfinite(values))
    breaks = _ends_of_breaks(values)
    if len(finite) <= max_points:
        return np.union1d(finite, breaks)
    chosen = finite[_THINNER.downsample(finite, values[finite], n_out=max_points - 2).astype(np.intp)]
    extremes = finite[[values[finite].argmin(), values[finite].argmax()]]
    return np.union1d(np.concatenate([chosen, extremes]), breaks)


def _ends_of_breaks(values: Floats) -> NDArray[np.intp]:
    """Indices of the first and last point of each stretch of NaN, of infinity, and of minus infinity."""
    kinds = np.select([np.isnan(values), np.isposinf(values), np.isneginf(values)], [1, 2, 3], 0)
    starts = np.diff(kinds, prepend=0) != 0
    ends = np.diff(kinds, append=0) != 0
    return np.flatnonzero((kinds != 0) & (starts | ends))


def _between(curve: Curve, x_from: int | None, x_to: int | None) -> Curve:
    inside = np.ones(len(curve.steps), dtype=bool)
    if x_from is not None:
        inside &= curve.steps >= x_from
    if x_to is not None:
        inside &= curve.steps <= x_to
    return Curve(curve.steps[inside], curve.wall_s[inside], curve.values[inside])


def new_chunks(after: Mapping[int, int]) -> Sequence[ChunkView]:
    """Chunks stored since, for each attempt by its id, the sequence it was read up to (-1: from its start).

    One query, however many attempts are watched.
    """
    if not after:
        return []
    unseen = reduce(or_, (Q(attempt_id=pk, sequence__gt=sequence) for pk, sequence in after.items()))
    rows = CurveChunk.objects.filter(unseen).order_by("attempt_id", "sequence")
    return [
        ChunkView(attempt_id, sequence, unpack(payload))
        for attempt_id, sequence, payload in rows.values_list("attempt_id", "sequence", "payload")
    ]
