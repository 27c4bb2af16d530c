"""A supervisor from the outside: how it is started, and how it is told its attempt."""

import os
import subprocess
import sys

from jobs.models import Attempt
from workers.identity import TREE_VARIABLE, make_tree_tag

SPARE = "spare"  # the argument of one that has an engine warm before it has an attempt


class SupervisorProcess:
    """A supervisor in a session of its own, so that it outlives this worker once it has its attempt.

    Until then it waits on a pipe that only this worker holds, so that it ends with it however that may end.
    """

    def __init__(self, *, is_spare: bool = False) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "workers.supervisor", *([SPARE] if is_spare else [])],
            stdin=subprocess.PIPE,
            start_new_session=True,
            env=os.environ | {TREE_VARIABLE: make_tree_tag()},
        )

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    def hand_over(self, attempt: Attempt) -> bool:
        """Tell it its attempt, which it owns from then on; False where it has ended."""
        assert self.process.stdin is not None  # noqa: S101 - opened as a pipe
        try:
            with self.process.stdin as pipe:
                pipe.write(f"{attempt.pk}\n".encode())
        except BrokenPipeError:
            return False
        return self.is_alive

    def dismiss(self) -> None:
        """It is not needed: at the end of its pipe it ends itself and what it started."""
        assert self.process.stdin is not None  # noqa: S101 - opened as a pipe
        self.process.stdin.close()
