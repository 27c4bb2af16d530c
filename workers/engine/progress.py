"""A run on a terminal: instead of JSON, one line that is written over and over, and at last what came out."""

import os

from jobs.contract.events import Event, Finished, Phase, Points, Started, Warned
from jobs.contract.metrics import Summary
from jobs.contract.states import Outcome

_OVER_THE_LINE = "\r\x1b[K"  # back to the line's beginning, and nothing behind it


class ProgressLine:
    """Takes events as a stream does and shows them on the terminal that standard output is.

    Where standard error is that terminal too, warnings stand above the line; otherwise the narrator tells them there.
    """

    def __init__(self, fd: int, *, tells_warnings: bool) -> None:
        self._fd = fd
        self._tells_warnings = tells_warnings
        self._num_steps = 0
        self._last: dict[str, float] = {}  # of each series

    @classmethod
    def on_stdout(cls) -> "ProgressLine":
        """Take the terminal for the line alone; whatever a library prints there goes to standard error from now on."""
        fd = os.dup(1)
        os.dup2(2, 1)
        return cls(fd, tells_warnings=os.isatty(2))

    def emit(self, event: Event) -> None:
        """Show the event, where it is news to a person."""
        match event:
            case Phase():
                self._write(event.name.replace("_", " "))
            case Started():
                self._num_steps = event.spec.num_steps or 0
                spec = event.spec
                self._write(f"{spec.model} on {spec.dataset}, on {event.device_name}\n")
            case Warned() if self._tells_warnings:
                self._write(f"warning: {event.finding.field}: {event.finding.sentence}\n")
            case Points():
                self._last |= {name: values[-1] for name, values in event.series.items()}
                if not all(name.startswith("telemetry.") for name in event.series):
                    self._write(self._where_it_is(event.steps[-1]))
            case Finished(outcome=Outcome.SUCCEEDED):
                self._write(f"succeeded: {figures_of(event.summary)}\n")
            case Finished():  # the error's sentence follows on standard error
                self._write("")

    def _where_it_is(self, step: int) -> str:
        parts = [f"step {step:,} of {self._num_steps:,}"]
        if (loss := self._last.get("train_loss")) is not None:
            parts.append(f"loss {loss:.4g}")
        if (step_ms := self._last.get("step_time_ms")) is not None:
            left_s = round((self._num_steps - step) * step_ms / 1e3)
            parts += [f"{step_ms:.3g} ms a step", f"{left_s // 60}:{left_s % 60:02d} left"]
        return ", ".join(parts)

    def _write(self, text: str) -> None:
        os.write(self._fd, f"{_OVER_THE_LINE}{text}".encode())


def figures_of(summary: Summary) -> str:
    """The few figures that a person looks for first."""
    figures = [
        (summary.num_steps, "{:,} steps"),
        (summary.steady_step_time_ms, "{:.3g} ms a step"),
        (summary.samples_per_s, "{:,.0f} samples/s"),
        (summary.final_eval_loss, "evaluation loss {:.4g}"),
    ]
    return ", ".join(words.format(value) for value, words in figures if value is not None)
