"""Curves: read from where their points are stored, cut to a range, and thinned to what a plot can show."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from typing import Final

from django.db.models import Q

from jobs.curves import Curve, Frame, concatenate, frames_after
from jobs.models import Attempt, CurveChunk, Job
from jobs.selectors.stored_points import Cut, Piece, Stretch, Wish, find_stored, series_of, walls_at_end
from jobs.thinning import MIN_POINTS, thin

__all__ = ["MIN_POINTS", "Stretch", "thin"]

FULL: Final = "full"  # every stored point
THINNED: Final = "minmaxlttb"  # chosen points, each of them a stored one


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
    has_lost_points: bool = False  # of an old run: only the lowest and the highest of every few are kept


@dataclass(frozen=True)
class ChunkView:
    """What is new in one stored chunk, as the live page hands it on."""

    attempt_id: int
    first: int  # sequence of the first flush that is new
    sequence: int  # of the last one
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


def series_names(*attempts: Attempt) -> list[str]:
    """The series that have points, in the order in which they first appeared; reads no points."""
    return series_of([stretch.attempt_id for line in lineages(attempts).values() for stretch in line])


def read_curve(
    attempt: Attempt, series: str, *, max_points: int | None = None, x_from: int | None = None, x_to: int | None = None
) -> CurveView:
    """One series between two steps (both included), thinned to about `max_points`.

    What is outside the range is not read, nor more of what is inside than shows the curve. Raises ValueError where
    `max_points` is less than `MIN_POINTS`.
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
    """The same series of several attempts by their ids, in as many queries as for one; see `read_curve`."""
    cut = Cut(x_from, x_to, _checked(max_points))
    lines = lineages(attempts)
    pieces = read_pieces(lines, series, cut)
    return {pk: _view(pieces[pk], series, cut, _seams(line)) for pk, line in lines.items()}


def read_all_series(
    attempt: Attempt, *, max_points: int | None = None, x_from: int | None = None, x_to: int | None = None
) -> dict[str, CurveView]:
    """Every series of an attempt by its name, in as many queries as for one; see `read_curve`."""
    cut = Cut(x_from, x_to, _checked(max_points))
    lines = lineages([attempt])
    line = lines[attempt.pk]
    pieces = read_lines(lines, series_of([stretch.attempt_id for stretch in line]), cut)
    return {name: _view(piece, name, cut, _seams(line)) for (name, _pk), piece in pieces.items()}


def read_pieces(
    lines: Mapping[int, Sequence[Stretch]], series: str, cut: Cut, own_cuts: Mapping[int, Cut] | None = None
) -> dict[int, Piece]:
    """A series along each line, in arrays: its stretches one after the other, in steps and in time."""
    return {pk: piece for (_series, pk), piece in read_lines(lines, [series], cut, own_cuts).items()}


def read_lines(
    lines: Mapping[int, Sequence[Stretch]],
    names: Sequence[str],
    cut: Cut,
    own_cuts: Mapping[int, Cut] | None = None,
) -> dict[tuple[str, int], Piece]:
    """Some series along each line, by series and line. Lines may have cuts of their own, all of them within `cut`."""
    own_cuts = own_cuts or {}
    wishes = {
        (name, pk, place): Wish(name, stretch, own_cuts.get(pk, cut).up_to(stretch.last_step))
        for name in names
        for pk, line in lines.items()
        for place, stretch in enumerate(line)
    }
    if not wishes:
        return {}
    ids = {wish.stretch.attempt_id for wish in wishes.values()}
    pieces = find_stored(ids, names, Cut(cut.x_from, cut.x_to)).read(wishes)
    ends_s = walls_at_end({stretch for line in lines.values() for stretch in line[:-1]})
    return {
        (name, pk): _one_after_the_other(
            [pieces[name, pk, place] for place in range(len(line))], [ends_s.get(stretch, 0.0) for stretch in line]
        )
        for name in names
        for pk, line in lines.items()
    }


def read_own_curve(attempt: Attempt, series: str) -> Curve:
    """Every stored point of a series that the attempt itself told, without what it inherited."""
    return read_pieces({attempt.pk: [Stretch(attempt.pk, None)]}, series, Cut())[attempt.pk].curve


def wall_before(attempt: Attempt) -> float:
    """Seconds of training in the stretches before the attempt's own: its points' wall time counts from there."""
    line = lineages([attempt])[attempt.pk]
    return sum(walls_at_end(set(line[:-1])).values())


def _one_after_the_other(pieces: Sequence[Piece], ends_s: Sequence[float]) -> Piece:
    began_s = [sum(ends_s[:place]) for place in range(len(pieces))]
    curves = [
        Curve(piece.curve.steps, piece.curve.wall_s + began, piece.curve.values) if began else piece.curve
        for piece, began in zip(pieces, began_s, strict=True)
    ]
    return Piece(
        concatenate(curves),
        sum(piece.num_stored for piece in pieces),
        all(piece.is_full for piece in pieces),
        any(piece.has_lost_points for piece in pieces),
    )


def _seams(line: Sequence[Stretch]) -> list[int]:
    return [stretch.last_step for stretch in line if stretch.last_step is not None]


def _checked(max_points: int | None) -> int | None:
    if max_points is not None and max_points < MIN_POINTS:
        raise ValueError(f"max_points must be at least {MIN_POINTS}")
    return max_points


def _view(piece: Piece, series: str, cut: Cut, seams: Sequence[int]) -> CurveView:
    thinned = view_curve(piece.curve, series, cut.max_points, seams)
    level = thinned.level if piece.is_full else THINNED
    return replace(thinned, level=level, num_points_total=piece.num_stored, has_lost_points=piece.has_lost_points)


def view_curve(curve: Curve, series: str, max_points: int | None = None, seams: Sequence[int] = ()) -> CurveView:
    """A curve as lists, thinned where it has more than `max_points` points."""
    total = len(curve)
    level = FULL
    max_points = _checked(max_points)
    if max_points is not None and total > max_points:
        curve = curve[thin(curve.values, max_points)]
        level = THINNED
    x, wall_s, y = curve.steps.tolist(), curve.wall_s.tolist(), curve.values.tolist()
    return CurveView(series, x, wall_s, y, level, total, list(seams))


def flushes_told(attempt_ids: Collection[int]) -> dict[int, int]:
    """For each attempt by its id, the sequence of its newest flush; -1 where there is none."""
    if not attempt_ids:
        return {}
    rows = Attempt.objects.filter(pk__in=attempt_ids).order_by().values_list("pk", "num_flushes")
    return {pk: num_flushes - 1 for pk, num_flushes in rows}


def new_chunks(after: Mapping[int, int]) -> Sequence[ChunkView]:
    """Points stored since, for each attempt by its id, the flush it was read up to (-1: from its start).

    One query, however many attempts are watched. Flushes that were merged with ones seen before come without those;
    of an attempt that was compacted since, nothing comes.
    """
    if not after:
        return []
    unseen = reduce(or_, (Q(attempt_id=pk, sequence__gt=sequence) for pk, sequence in after.items()))
    rows = CurveChunk.objects.filter(unseen).order_by("attempt_id", "sequence")
    seen, chunks = dict(after), []
    for attempt_id, sequence, payload in rows.values_list("attempt_id", "sequence", "payload"):
        frames = frames_after(payload, after[attempt_id])
        chunks.append(ChunkView(attempt_id, seen[attempt_id] + 1, sequence, frames))
        seen[attempt_id] = sequence
    return chunks
