"""How much time a benchmark takes: repeats and their length."""

from dataclasses import dataclass, replace

from benchmarks.intervals import Stopping
from benchmarks.turns import Course


@dataclass(frozen=True)
class Effort:
    """Stopping rule and course of what takes turns; number of repeats of what does not."""

    stopping: Stopping
    course: Course
    peers_course: Course  # five processes a repeat instead of two
    num_repeats: int

    @property
    def at_least(self) -> Stopping:
        """As many repeats as must be, and no more: where no claim waits for a narrow interval."""
        return replace(self.stopping, at_most=self.stopping.at_least)


FULL = Effort(Stopping(), Course(num_rounds=8), Course(num_rounds=5), num_repeats=3)
QUICK = Effort(Stopping(at_least=2, at_most=2), Course(num_rounds=4), Course(num_rounds=3), num_repeats=1)
