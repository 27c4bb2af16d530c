"""Events on their way from the engine's file into the database, in order and each once."""

import time
from pathlib import Path

from jobs.contract.events import Artifact, Event, Finished, Phase, Points, Started, Warned
from jobs.contract.findings import Finding, Severity
from jobs.contract.messages import gettext_noop as _
from jobs.models import Attempt
from jobs.services import record
from workers.engine_process import EventReader

FLUSH_S = 0.2  # points are written this often, so that a viewer is at most half a second behind
SPOOL_BYTES = 256 * 2**20  # of events that wait in the file while the database is away

_MOST_WAITING = 500  # events in memory; the rest waits in the file
_POINTS_PER_FLUSH = 65_536

_SPOOL_FULL = Finding(
    code="spool_full",
    field="spec",
    severity=Severity.WARN,
    message=_("The database was away for so long that the oldest points of that time had to be given up."),
)


class Delivery:
    """What the engine says, until it is stored. While the database is away it waits in the file."""

    def __init__(self, attempt: Attempt, path: Path) -> None:
        self.finished: Finished | None = None
        self._attempt = attempt
        self._reader = EventReader(path)
        self._waiting: list[Event] = []
        self._num_flushes = 0
        self._flushed_at = 0.0

    def take(self) -> bool:
        """Read on, unless enough waits already; False where nothing is left to deliver."""
        if len(self._waiting) < _MOST_WAITING:
            self._waiting += self._reader.read_new()
        return bool(self._waiting)

    def deliver(self, *, flush: bool = False) -> None:
        """Store what waits; points only once per flush interval unless `flush`. Raises what the database raises."""
        while self._waiting:
            event = self._waiting[0]
            if isinstance(event, Points):
                if not flush and time.monotonic() - self._flushed_at < FLUSH_S:
                    return
                self._store_points()
            else:
                self._store(event)
                self._waiting.pop(0)

    def shed(self) -> None:
        """Where the spool is full, give up its oldest points and nothing else, and say so."""
        if self._reader.backlog_bytes <= SPOOL_BYTES:
            return
        if _warning not in self._waiting:
            self._waiting.append(_warning)
        while self._reader.backlog_bytes > SPOOL_BYTES // 2:
            self._waiting += [event for event in self._reader.read_new() if not isinstance(event, Points)]

    def _store_points(self) -> None:
        leading = _leading_points(self._waiting)
        record.record_points(self._attempt, self._num_flushes, leading)
        self._num_flushes += 1
        self._flushed_at = time.monotonic()
        del self._waiting[: len(leading)]

    def _store(self, event: Event) -> None:
        match event:
            case Started():
                record.record_started(self._attempt, event)
            case Phase():
                record.record_phase(self._attempt, event.name)
            case Warned():
                record.record_finding(self._attempt, event.finding)
            case Artifact():
                record.record_artifact(self._attempt, event)
            case Finished():
                self.finished = event


_warning = Warned(finding=_SPOOL_FULL)


def _leading_points(events: list[Event]) -> list[Points]:
    """The points at the front of the line that make up one flush; one event at least."""
    leading: list[Points] = []
    num_points = 0
    for event in events:
        if not isinstance(event, Points) or num_points >= _POINTS_PER_FLUSH:
            break
        leading.append(event)
        num_points += len(event.steps) * len(event.series)
    return leading
