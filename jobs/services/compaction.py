"""The points of runs that have ended are compacted; and of old runs, where that is wished, only the levels are kept."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from jobs.curve_blocks import BLOCK_POINTS, blocks_of
from jobs.curves import Curve, concatenate, unpack
from jobs.models import Attempt, AuditAction, CurveBlock, User
from jobs.models.attempt import CurveForm
from jobs.services.audit import note
from jobs.services.chunks import FULL_CHUNK_POINTS, merge_all

_ROWS_AT_ONCE = 100


def due(ended_for: timedelta) -> QuerySet[Attempt]:
    """Attempts that ended so long ago and are not compacted, the oldest first."""
    waiting = Attempt.objects.filter(curve_form=CurveForm.AS_TOLD, ended_at__lte=Now() - ended_for)
    return waiting.order_by("ended_at")


def compact(attempt: Attempt) -> bool:
    """Compact the points of an attempt that has ended; False where that was done already.

    Nobody writes points of such an attempt, so they are read and encoded before the transaction. Of several who do this
    at once one succeeds; an end in the middle leaves everything as it was.
    """
    is_small = attempt.num_points < FULL_CHUNK_POINTS
    blocks = [] if is_small else list(_blocks(attempt))
    with transaction.atomic():
        ended = Attempt.objects.filter(pk=attempt.pk, curve_form=CurveForm.AS_TOLD).exclude(outcome=None)
        if ended.update(curve_form=CurveForm.COMPACTED) != 1:
            return False
        if is_small:
            merge_all(attempt)
        else:
            CurveBlock.objects.bulk_create(blocks, batch_size=_ROWS_AT_ONCE)
            attempt.chunks.all().delete()
    return True


def _blocks(attempt: Attempt) -> Iterator[CurveBlock]:
    """Block by block as the chunks are read, so that a long run need not fit into memory unpacked."""
    open_parts: dict[str, list[Curve]] = defaultdict(list)
    numbers: dict[str, int] = defaultdict(int)
    payloads = attempt.chunks.order_by("sequence").values_list("payload", flat=True)
    for payload in payloads.iterator(chunk_size=16):
        for frame in unpack(payload):
            for name, values in frame.series.items():
                parts = open_parts[name]
                parts.append(Curve(frame.steps, frame.wall_s, values))
                if sum(map(len, parts)) >= BLOCK_POINTS:
                    curve = concatenate(parts)
                    num_whole = len(curve) - len(curve) % BLOCK_POINTS
                    yield from _rows(attempt, name, numbers, curve[:num_whole])
                    open_parts[name] = [curve[num_whole:]]
    for name, parts in open_parts.items():
        yield from _rows(attempt, name, numbers, concatenate(parts))


def _rows(attempt: Attempt, series: str, numbers: dict[str, int], curve: Curve) -> Iterator[CurveBlock]:
    for block in blocks_of(curve):
        yield CurveBlock(attempt=attempt, series=series, number=numbers[series], **vars(block))
        numbers[series] += 1


def drop_full_points(older_than: timedelta, by: User | None = None) -> int:
    """Keep only the coarser levels of runs that ended so long ago; returns how many runs lost points.

    Short series have no coarser level and stay whole. `by` is the person who wants it, None where a setting does.
    """
    old = Attempt.objects.filter(curve_form=CurveForm.COMPACTED, ended_at__lte=Now() - older_than)
    num_dropped = 0
    while ids := list(old.order_by("ended_at").values_list("pk", flat=True)[:_ROWS_AT_ONCE]):
        with transaction.atomic():
            blocks = CurveBlock.objects.filter(attempt_id__in=ids, medium__isnull=False)
            num_runs = blocks.order_by().values("attempt").distinct().count()
            blocks.update(full=None)
            Attempt.objects.filter(pk__in=ids).update(curve_form=CurveForm.COARSE)
            if num_runs and by:
                note(by, AuditAction.DROP_POINTS, days=older_than.days, runs=num_runs)
        num_dropped += num_runs
    return num_dropped
