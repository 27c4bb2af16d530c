"""Everything that can go wrong with a job by name, with the outcome and exit code that it leads to."""

from typing import TYPE_CHECKING

from jobs.contract.states import Outcome

if TYPE_CHECKING:
    from jobs.contract.findings import Finding


class PitwallError(Exception):
    """Something that a user can act on; its text is one sentence that says what to change."""

    exit_code = 1
    outcome = Outcome.FAILED


class InvalidSpec(PitwallError):
    """The spec cannot be read: a field is unknown, of the wrong type or out of range."""

    exit_code = 2

    def __init__(self, findings: "list[Finding]") -> None:
        self.findings = findings
        super().__init__(" ".join(f"{finding.field}: {finding.sentence}" for finding in findings))


class RefusedSpec(InvalidSpec):
    """The spec is well formed, but a rule refuses this combination."""

    exit_code = 3


class DataMissing(PitwallError):
    """A data set's files are not where the engine looks for them."""

    exit_code = 4


class Diverged(PitwallError):
    """The training loss stopped being a finite number."""

    exit_code = 5
    outcome = Outcome.DIVERGED

    def __init__(self, step: int) -> None:
        self.step = step
        super().__init__(
            f"The training loss stopped being finite at step {step}. Lower the learning rate or use a wider precision."
        )


class OutOfMemory(PitwallError):
    """The device's or the host's memory did not suffice."""

    exit_code = 6
    outcome = Outcome.OUT_OF_MEMORY


class TimedOut(PitwallError):
    """The spec's `time_limit_s` has passed."""

    exit_code = 8
    outcome = Outcome.TIMED_OUT

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"The time limit of {limit_s:g} s has passed. Raise it, or train for fewer steps.")


class DiskFull(PitwallError):
    """A file could not be written: the disk, the quota or the largest allowed file is full."""

    exit_code = 9

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} could not be written: there is no room left. Free some space and run the job again.")


class CheckpointUnreadable(PitwallError):
    """A checkpoint's file is missing, damaged or not one of ours."""

    exit_code = 10


class CheckpointMismatch(PitwallError):
    """A checkpoint belongs to another job."""

    exit_code = 11


class CompilerFailed(PitwallError):
    """torch.compile found no compiler that works."""

    exit_code = 12


class DeviceMismatch(PitwallError):
    """A model or a loss computes with tensors of different devices; the text names both."""

    exit_code = 13

    def __init__(self, place: str, one: tuple[str, str], other: tuple[str, str]) -> None:
        """`one` and `other` are a tensor's name and its device."""
        super().__init__(
            f"In {place} {one[0]} is on {one[1]} and {other[0]} is on {other[1]}. A step's tensors must all be on the "
            "run's device: make such a tensor a buffer of its module, or create it on the device of its inputs."
        )


class OutputUnusable(PitwallError):
    """A file or folder that the command line names for a run's output cannot be written."""

    exit_code = 14

    def __init__(self, option: str, path: object, reason: str | None) -> None:
        super().__init__(f"{option} {path} cannot be written: {reason or 'it is of no use'}. Name another one.")


class RankFailed(PitwallError):
    """One rank of a distributed run failed; the message names the rank and its error."""

    exit_code = 7
