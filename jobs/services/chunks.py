"""Flushes become chunks, and small chunks larger ones, so that a run does not leave thousands of rows."""

from jobs.curves import Frame, count_points, last_step_of, merge, pack
from jobs.models import Attempt, CurveChunk

FULL_CHUNK_POINTS = 4096  # from here on a chunk is left alone

# So many flushes are merged at once. A merged chunk takes in the one before it once it is as large, so that a point is
# written a few times on its way into a full chunk, and an attempt has a handful of chunks that are not full.
FLUSHES_PER_MERGE = 8

_MOST_LOOKED_AT = 32


def add_chunk(attempt: Attempt, sequence: int, frames: list[Frame]) -> None:
    """Store a flush; call it in the transaction that counts it."""
    chunk = CurveChunk(
        attempt=attempt,
        sequence=sequence,
        first_step=min(int(frame.steps.min()) for frame in frames),
        last_step=last_step_of(frames),
        num_points=count_points(frames),
        payload=pack(frames),
    )
    if (sequence + 1) % FLUSHES_PER_MERGE == 0 and chunk.num_points < FULL_CHUNK_POINTS:
        _take_in(chunk, _neighbours(chunk))
    chunk.save()


def merge_all(attempt: Attempt) -> None:
    """One chunk for all of an attempt's points; for one that has few, and has ended."""
    last = attempt.chunks.order_by("sequence").last()
    if last:
        _take_in(last, list(attempt.chunks.exclude(pk=last.pk).values_list("pk", flat=True)))
        last.save()


def _neighbours(chunk: CurveChunk) -> list[int]:
    """The stored chunks that this one, which is the newest, takes in."""
    stored = CurveChunk.objects.filter(attempt_id=chunk.attempt_id).order_by("-sequence")
    neighbours, num_points = [], chunk.num_points
    for index, (pk, count) in enumerate(stored.values_list("pk", "num_points")[:_MOST_LOOKED_AT]):
        is_larger = count > num_points and index >= FLUSHES_PER_MERGE - 1
        if is_larger or max(count, num_points) >= FULL_CHUNK_POINTS:
            break
        neighbours.append(pk)
        num_points += count
    return neighbours


def _take_in(chunk: CurveChunk, earlier_ids: list[int]) -> None:
    """Put the points of earlier chunks before those of this one, and delete them."""
    if not earlier_ids:
        return
    earlier = CurveChunk.objects.filter(pk__in=earlier_ids)
    rows = list(earlier.order_by("sequence"))
    chunk.payload = merge((row.sequence, row.payload) for row in [*rows, chunk])
    chunk.first_step = min(row.first_step for row in [*rows, chunk])
    chunk.last_step = max(row.last_step for row in [*rows, chunk])
    chunk.num_points += sum(row.num_points for row in rows)
    earlier.delete()
