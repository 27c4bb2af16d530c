"""The log that a person reads: the same events in words, on standard error."""

import sys
import time

from jobs.contract.events import Event, Finished, Phase, Points, Started, Warned
from jobs.contract.states import Outcome

_LOSS_EVERY_S = 2.0


class Narrator:
    """Tells phases, warnings and, now and then, the loss."""

    def __init__(self) -> None:
        self._loss_due_s = 0.0

    def tell(self, event: Event) -> None:
        """Write the event as a line, where it is worth one."""
        match event:
            case Phase():
                self._write(event.name.replace("_", " "))
            case Started():
                spec = event.spec
                work = f"{spec.num_steps} steps of {spec.global_batch_size} samples"
                self._write(f"{spec.model} on {spec.dataset}, {work}, on {event.device_name}")
            case Warned():
                self._write(f"warning: {event.finding.field}: {event.finding.sentence}")
            case Points() if "train_loss" in event.series:
                self._tell_loss(event)
            case Finished(outcome=Outcome.SUCCEEDED):  # a failure has its own sentence there already
                self._write("succeeded")

    def _tell_loss(self, event: Points) -> None:
        now_s = time.monotonic()
        if now_s >= self._loss_due_s:
            self._loss_due_s = now_s + _LOSS_EVERY_S
            self._write(f"step {event.steps[-1]}: loss {event.series['train_loss'][-1]:.5g}")

    def _write(self, text: str) -> None:
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")
