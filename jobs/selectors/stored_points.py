"""Points as they are stored: in chunks of all series while a run lives, in blocks of one series once it is compacted.

A reader never learns which. Chunks are read before blocks, and an attempt that has blocks has all of its points in
them: so one that is compacted between the two queries is seen once.
"""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from django.db.models import BinaryField, BooleanField, ExpressionWrapper, Q, QuerySet
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce, Substr

from jobs.curve_blocks import RATIOS, decode
from jobs.curves import Curve, Frame, concatenate, join, series_in, unpack
from jobs.models import CurveBlock, CurveChunk
from jobs.thinning import pick_extremes

Key = TypeVar("Key", bound=Hashable)

# A level is fine enough where it has so many points for each that a plot asks for.
_POINTS_TO_CHOOSE_FROM = 2

_IDS_PER_QUERY = 5000

# A chunk's header names its series in its first line; this many bytes hold that line many times over.
_HEAD_BYTES = 8192


@dataclass(frozen=True)
class Stretch:
    """A part of a curve: an attempt's points up to a step, all of them where that is None."""

    attempt_id: int
    last_step: int | None


@dataclass(frozen=True)
class Cut:
    """What is asked for: the steps between two (both included), and about how many points show them."""

    x_from: int | None = None
    x_to: int | None = None
    max_points: int | None = None

    def up_to(self, step: int | None) -> "Cut":
        """The same, no further than a step."""
        if step is None:
            return self
        return Cut(self.x_from, step if self.x_to is None else min(step, self.x_to), self.max_points)

    def touches(self, first_step: int, last_step: int) -> bool:
        """Whether some step of a stretch may be inside."""
        return not self._is_left_of(first_step) and (self.x_from is None or last_step >= self.x_from)

    def holds(self, first_step: int, last_step: int) -> bool:
        """Whether every step of a stretch is inside."""
        return (self.x_from is None or first_step >= self.x_from) and not self._is_left_of(last_step)

    def _is_left_of(self, step: int) -> bool:
        return self.x_to is not None and step > self.x_to

    def of(self, curve: Curve) -> Curve:
        """The points of a curve that are inside."""
        if not len(curve) or self.holds(int(curve.steps.min()), int(curve.steps.max())):
            return curve
        inside = np.ones(len(curve), dtype=bool)
        if self.x_from is not None:
            inside &= curve.steps >= self.x_from
        if self.x_to is not None:
            inside &= curve.steps <= self.x_to
        return curve[inside]


@dataclass(frozen=True)
class Piece:
    """Points of one stretch, maybe at a coarser level."""

    curve: Curve
    num_stored: int  # points that it stands for
    is_full: bool
    has_lost_points: bool = False  # of an old run: only the lowest and the highest of every few are kept


@dataclass(frozen=True)
class BlockInfo:
    """A block without its points."""

    pk: int
    attempt_id: int
    first_step: int
    last_step: int
    last_wall_s: float
    num_points: int
    has_levels: bool
    has_full: bool


@dataclass(frozen=True)
class Reading:
    """Which level of which block is to be read, and how many of its points are wanted at most."""

    block: BlockInfo
    level: str
    ratio: int  # of what is wanted
    is_whole: bool  # every step of the block is asked for


@dataclass(frozen=True)
class Wish:
    """A series along a stretch."""

    series: str
    stretch: Stretch
    cut: Cut


class StoredSeries:
    """Some series of several attempts; blocks stand by series and attempt."""

    def __init__(
        self, frames: Mapping[int, Sequence[Frame]], blocks: Mapping[tuple[str, int], Sequence[BlockInfo]]
    ) -> None:
        self._frames = frames
        self._blocks = blocks

    def read(self, wishes: Mapping[Key, Wish]) -> dict[Key, Piece]:
        """The points of each wish, by the keys that the caller gave them."""
        plans = {key: self._plan(wish) for key, wish in wishes.items()}
        decoded = _read_levels(reading for plan in plans.values() for reading in plan)
        pieces = {}
        for key, wish in wishes.items():
            if (wish.series, wish.stretch.attempt_id) in self._blocks:
                pieces[key] = _put_together(plans[key], decoded, wish.cut)
            else:
                curve = wish.cut.of(join(self._frames.get(wish.stretch.attempt_id, ()), wish.series))
                pieces[key] = Piece(curve, len(curve), is_full=True)
        return pieces

    def _plan(self, wish: Wish) -> list[Reading]:
        """Whole blocks at the level that suffices; those at the edges in full, so that no extreme there is missed."""
        blocks = self._blocks.get((wish.series, wish.stretch.attempt_id), ())
        touched = [block for block in blocks if wish.cut.touches(block.first_step, block.last_step)]
        ratio = _sufficient_ratio(sum(_num_inside(block, wish.cut) for block in touched), wish.cut.max_points)
        return [_reading(block, ratio, wish.cut) for block in touched]


def _num_inside(block: BlockInfo, cut: Cut) -> int:
    """About how many of a block's points are asked for, as if its steps were evenly spaced."""
    first = block.first_step if cut.x_from is None else max(block.first_step, cut.x_from)
    last = block.last_step if cut.x_to is None else min(block.last_step, cut.x_to)
    return block.num_points * max(0, last - first + 1) // (block.last_step - block.first_step + 1)


def _sufficient_ratio(num_points: int, max_points: int | None) -> int:
    if max_points is None:
        return 1
    needed = max_points * _POINTS_TO_CHOOSE_FROM
    return max(ratio for ratio in RATIOS.values() if ratio == 1 or num_points // ratio >= needed)


def _reading(block: BlockInfo, ratio: int, cut: Cut) -> Reading:
    is_whole = cut.holds(block.first_step, block.last_step)
    finest_needed = ratio if is_whole else 1
    levels = [name for name in RATIOS if (block.has_full if name == "full" else block.has_levels)]
    level = max((name for name in levels if RATIOS[name] <= finest_needed), key=RATIOS.__getitem__, default=levels[0])
    return Reading(block, level, ratio, is_whole)


def _put_together(plan: Iterable[Reading], decoded: Mapping[tuple[int, str], Curve], cut: Cut) -> Piece:
    curves, num_stored, is_full = [], 0, True
    for reading in plan:
        curve = cut.of(decoded[reading.block.pk, reading.level])
        num_stored += reading.block.num_points if reading.is_whole else len(curve)
        if reading.ratio > RATIOS[reading.level]:  # as sparse as its neighbours, so that none outweighs the others
            curve = curve[pick_extremes(curve.values, len(curve) * RATIOS[reading.level] // reading.ratio)]
        is_full = is_full and reading.level == "full" and reading.ratio == 1
        curves.append(curve)
    has_lost_points = any(not reading.block.has_full for reading in plan)
    return Piece(concatenate(curves), num_stored, is_full, has_lost_points)


def _read_levels(readings: Iterable[Reading]) -> dict[tuple[int, str], Curve]:
    ids: dict[str, set[int]] = defaultdict(set)
    for reading in readings:
        ids[reading.level].add(reading.block.pk)
    return {(pk, level): decode(payload) for level, pks in ids.items() for pk, payload in _payloads(level, sorted(pks))}


def _payloads(level: str, ids: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    for begin in range(0, len(ids), _IDS_PER_QUERY):
        rows = CurveBlock.objects.filter(pk__in=ids[begin : begin + _IDS_PER_QUERY]).order_by()
        # Where full points were dropped since, the level below stands in.
        yield from rows.values_list("pk", Coalesce(level, "medium") if level == "full" else level)


def find_stored(attempt_ids: Collection[int], series: Collection[str], span: Cut) -> StoredSeries:
    """Where the points of these series are; chunks and blocks outside the span are left out."""
    frames = _read_frames(attempt_ids, span)
    blocks = CurveBlock.objects.filter(_inside(span), attempt_id__in=attempt_ids, series__in=series)
    return StoredSeries(frames, _block_infos(blocks))


def _inside(span: Cut) -> Q:
    inside = Q()
    if span.x_to is not None:
        inside &= Q(first_step__lte=span.x_to)
    if span.x_from is not None:
        inside &= Q(last_step__gte=span.x_from)
    return inside


def _read_frames(attempt_ids: Collection[int], span: Cut) -> dict[int, list[Frame]]:
    frames: dict[int, list[Frame]] = defaultdict(list)
    chunks = CurveChunk.objects.filter(_inside(span), attempt_id__in=attempt_ids).order_by("attempt_id", "sequence")
    for attempt_id, payload in chunks.values_list("attempt_id", "payload"):
        frames[attempt_id].extend(unpack(payload))
    return frames


def _block_infos(blocks: QuerySet[CurveBlock]) -> dict[tuple[str, int], list[BlockInfo]]:
    infos: dict[tuple[str, int], list[BlockInfo]] = defaultdict(list)
    columns = ("pk", "attempt_id", "first_step", "last_step", "last_wall_s", "num_points")
    told = (_is_there("medium"), _is_there("full"))
    for series, *row in blocks.order_by("attempt_id", "number").values_list("series", *columns, *told):
        info = BlockInfo(*row)
        infos[series, info.attempt_id].append(info)
    return infos


def _is_there(column: str) -> Combinable:
    return ExpressionWrapper(Q(**{f"{column}__isnull": False}), output_field=BooleanField())


def walls_at_end(stretches: Collection[Stretch]) -> dict[Stretch, float]:
    """When the last step of each stretch was taken, by its attempt's own clock; 0 where no point tells."""
    ids = {stretch.attempt_id for stretch in stretches}
    if not ids:
        return {}
    frames = _read_frames(ids, Cut())
    blocks: dict[int, list[BlockInfo]] = defaultdict(list)
    for (_series, attempt_id), infos in _block_infos(CurveBlock.objects.filter(attempt_id__in=ids)).items():
        blocks[attempt_id] += infos
    return {stretch: _wall_at_end(stretch, frames, blocks) for stretch in stretches}


def _wall_at_end(stretch: Stretch, frames: Mapping[int, list[Frame]], blocks: Mapping[int, list[BlockInfo]]) -> float:
    cut = Cut(x_to=stretch.last_step)
    if stretch.attempt_id not in blocks:
        own = frames.get(stretch.attempt_id, ())
        return max((_last_wall_s(cut.of(Curve(f.steps, f.wall_s, f.wall_s))) for f in own), default=0.0)
    touched = [block for block in blocks[stretch.attempt_id] if cut.touches(block.first_step, block.last_step)]
    plan = [_reading(block, 1, cut) for block in touched]
    whole_s = [reading.block.last_wall_s for reading in plan if reading.is_whole]
    edges = _read_levels(reading for reading in plan if not reading.is_whole)
    return max([*whole_s, *(_last_wall_s(cut.of(curve)) for curve in edges.values())], default=0.0)


def _last_wall_s(curve: Curve) -> float:
    return float(curve.wall_s.max(initial=0.0))


def series_of(attempt_ids: Sequence[int]) -> list[str]:
    """The series that have points, in the order in which they first appeared; reads no points."""
    heads = (
        CurveChunk.objects.filter(attempt_id__in=attempt_ids)
        .order_by("attempt_id", "sequence")
        .values_list(Substr("payload", 1, _HEAD_BYTES, output_field=BinaryField()), flat=True)
    )
    blocks = CurveBlock.objects.filter(attempt_id__in=attempt_ids, number=0).order_by("pk")
    names = [name for head in heads for name in series_in(head)]
    return list(dict.fromkeys([*names, *blocks.values_list("series", flat=True)]))
