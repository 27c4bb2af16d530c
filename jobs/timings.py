"""The protocol's times, in seconds, scaled together by `PITWALL_TIME_SCALE`."""

from dataclasses import dataclass

from django.conf import settings


@dataclass(frozen=True)
class Timings:
    """How often owners show that they live, and how long their silence is borne."""

    heartbeat_s: float  # a supervisor and a worker write their heartbeat this often
    lease_s: float  # an attempt is lost when its heartbeat is older than this
    relay_s: float  # every host wakes the queues that have claimable work this often
    cancel_poll_s: float  # a supervisor looks for a request to cancel this often
    retry_s: float  # pause after the database could not be reached
    kill_grace_s: float  # from SIGTERM to SIGKILL
    give_up_s: float  # a process that SIGKILL has not ended by then will not end: its device goes into quarantine
    settle_s: float  # from a run's end until its points are compacted: whoever watched it has them by then
    reserve_after_s: float  # a job that has waited this long for several devices holds those of its best host


def timings() -> Timings:
    """The times in force in this process."""
    scale = settings.ENVIRONMENT.time_scale
    return Timings(
        heartbeat_s=10 * scale,
        lease_s=60 * scale,
        relay_s=10 * scale,
        cancel_poll_s=min(0.5, scale),
        retry_s=min(1.0, 5 * scale),
        kill_grace_s=5 * scale,
        give_up_s=30 * scale,
        settle_s=20 * scale,
        reserve_after_s=600 * scale,
    )
