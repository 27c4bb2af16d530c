"""A reaper waits one lease after the database was away: by a clock that the test sets."""

from jobs.timings import timings
from workers.steadiness import Steadiness


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def write_for(seconds: float, steadiness: Steadiness, clock: Clock) -> None:
    """A write every heartbeat."""
    end = clock.now + seconds
    while clock.now < end:
        clock.now += timings().heartbeat_s
        steadiness.note()


def test_a_host_that_has_just_started_knows_nothing_yet() -> None:
    clock = Clock()
    steadiness = Steadiness(clock)
    steadiness.note()
    assert steadiness.lasts_s == 0
    write_for(timings().lease_s, steadiness, clock)
    assert steadiness.lasts_s >= timings().lease_s


def test_a_pause_of_half_a_lease_begins_the_count_anew() -> None:
    clock = Clock()
    steadiness = Steadiness(clock)
    write_for(10 * timings().lease_s, steadiness, clock)
    clock.now += timings().lease_s / 2 + 1
    steadiness.note()
    assert steadiness.lasts_s == 0


def test_a_heartbeat_that_is_a_little_late_does_not() -> None:
    clock = Clock()
    steadiness = Steadiness(clock)
    write_for(timings().lease_s, steadiness, clock)
    clock.now += timings().lease_s / 2
    steadiness.note()
    assert steadiness.lasts_s >= timings().lease_s
