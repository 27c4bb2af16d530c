"""What a run is doing and has measured so far, told as events by the one process that reports."""

from collections.abc import Callable
from typing import Protocol

from jobs.contract.events import Event, Phase, Warned
from jobs.contract.findings import Finding
from jobs.contract.metrics import Summary
from jobs.contract.spec import TrainSpec
from workers.engine.narrator import Narrator


class Stream(Protocol):
    """Whatever takes events: a file, a pipe, a terminal."""

    def emit(self, event: Event) -> None:
        """Take one."""


class Report:
    """Phase, step and figures of this process; without a stream (ranks other than 0) it tells nobody.

    A narrator tells the same to people; of several processes of a run only the top one has it.
    """

    def __init__(self, stream: Stream | None, narrator: Narrator | None = None) -> None:
        self._stream = stream
        self._narrator = narrator
        self._told: list[Finding] = []
        self.phase = ""
        self.step: int | None = None  # the step being taken, or the last one taken
        self.summary = Summary()
        self.spec: TrainSpec | None = None  # as it was asked for
        self.inventory: Callable[[], dict[str, int]] | None = None  # bytes by holder, while there is a model

    def enter(self, phase: str) -> None:
        """A phase begins."""
        self.phase = phase
        self.emit(Phase(name=phase))

    def warn(self, finding: Finding) -> None:
        """Tell a warning once, however many see it."""
        if finding not in self._told:
            self._told.append(finding)
            self.emit(Warned(finding=finding))

    def emit(self, event: Event) -> None:
        """Pass an event on."""
        if self._stream is not None:
            self._stream.emit(event)
        if self._narrator is not None:
            self._narrator.tell(event)
