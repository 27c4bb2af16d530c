"""Since when this host can write to the database without a pause: the ground on which it may call others silent."""

import time
from collections.abc import Callable

from jobs.timings import timings


def seconds_since_boot() -> float:
    """A clock that nobody sets and that goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Steadiness:
    """How long writes have succeeded one after the other.

    While the database is away, or this process stands still, the heartbeats of living supervisors may not get through
    either. So whoever reaps waits one lease first, in which each of them is heard from.
    """

    def __init__(self, clock: Callable[[], float] = seconds_since_boot) -> None:
        self._clock = clock
        self._since = self._last = clock()

    def note(self) -> None:
        """A write has just succeeded; after a pause of half a lease the count begins anew."""
        now = self._clock()
        if now - self._last > timings().lease_s / 2:
            self._since = now
        self._last = now

    @property
    def lasts_s(self) -> float:
        """How long it has lasted by the last write."""
        return self._last - self._since
