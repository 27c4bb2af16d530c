"""Compacts the points of runs that have ended; in a thread of its own, so that it never delays an end."""

import logging
import os
import threading
import time
from datetime import timedelta

from django.db import Error

from jobs.models import Attempt
from jobs.services.compaction import compact, drop_full_points, due
from jobs.timings import timings

logger = logging.getLogger(__name__)

_AT_ONCE = 20
_BUSY_FACTOR = 180  # a host that measures something waits an hour in place of 20 s
_DROP_S = 3600.0


class Compactor:
    """Does a little at a time; whatever it leaves, it or another host finds again."""

    def __init__(self, keep_points_days: int) -> None:
        self._keep_points_days = keep_points_days
        self._drop_at = 0.0
        self._unreadable: set[int] = set()

    def work(self, *, is_idle: bool) -> float:
        """Compact some runs; returns the seconds until it wants to be called again."""
        settled = timedelta(seconds=timings().settle_s * (1 if is_idle else _BUSY_FACTOR))
        attempts = list(due(settled).exclude(pk__in=self._unreadable)[:_AT_ONCE])
        for attempt in attempts:
            self._compact(attempt)
        if self._keep_points_days and time.monotonic() >= self._drop_at:
            self._drop_at = time.monotonic() + _DROP_S
            drop_full_points(timedelta(days=self._keep_points_days))
        return 0.1 if len(attempts) == _AT_ONCE else timings().settle_s / 4

    def _compact(self, attempt: Attempt) -> None:
        try:
            compact(attempt)
        except Error:
            raise
        except Exception:
            # One run whose points cannot be read must not keep the others from being compacted; it stays as it is.
            logger.exception("the points of %s could not be compacted", attempt)
            self._unreadable.add(attempt.pk)


def be_nice() -> None:
    """Give this thread the lowest priority; on Linux it is a thread's own."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
