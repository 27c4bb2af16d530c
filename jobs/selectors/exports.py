"""What is exported of a job: its curves as they are shown, at full resolution, one after the other."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from jobs.contract.series import unit_of
from jobs.exports import Origin, Series
from jobs.models import Attempt, Job
from jobs.selectors.curves import lineages, read_pieces, wall_before
from jobs.selectors.stored_points import Cut


def origin_of(job: Job) -> Origin:
    """Which run it is, and when its wall time began to count; attempt 0 where none was made yet."""
    attempt = job.last_attempt
    if attempt is None:
        return Origin(job.pk, 0, job.queued_at)
    # Wall time counts from the first step, which comes when the model is built; in what was inherited from its own.
    since_s = (attempt.measured.build_s or 0.0) - wall_before(attempt)
    return Origin(job.pk, attempt.number, (attempt.running_at or attempt.claimed_at) + timedelta(seconds=since_s))


def exported_series(attempt: Attempt | None, names: Sequence[str]) -> Iterator[Series]:
    """These series of an attempt with what it inherited; each is read when it is asked for."""
    lines = lineages([attempt] if attempt else [])
    for name in names:
        for piece in read_pieces(lines, name, Cut()).values():
            yield Series(name, unit_of(name), piece.curve)
