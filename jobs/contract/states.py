"""The states of a job and of each of its attempts, and the outcomes they can end in."""

from enum import StrEnum


class Outcome(StrEnum):
    """How an attempt ended; final once written."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    OUT_OF_MEMORY = "out_of_memory"
    DIVERGED = "diverged"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    LOST = "lost"


class State(StrEnum):
    """Where a job is now; once it has ended, the state is its outcome."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    OUT_OF_MEMORY = "out_of_memory"
    DIVERGED = "diverged"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    LOST = "lost"


LIVE_STATES = (State.STARTING, State.RUNNING)
OPEN_STATES = (State.QUEUED, *LIVE_STATES)
ENDED_STATES = tuple(State(outcome.value) for outcome in Outcome)
