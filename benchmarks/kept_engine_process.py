"""Runs one after the other in one process of the engine: a spec on standard input, its end on standard output.

A line in is {"spec": ..., "spin_s": ...}: seconds that every step is held up, busily, to plant a slowdown. The hook is
there for 0 too, so that the two sides differ in nothing else. A line out is {"started": ..., "summary": ...}.
"""

import json
import sys
import time
from typing import Any

from torch import nn

from jobs.contract.events import Event, Started
from jobs.contract.spec import parse_spec
from workers.engine import assembly
from workers.engine.parallel import Rank
from workers.engine.report import Report
from workers.engine.run import run


class Starts:
    """A stream that keeps what a run says at its start."""

    def __init__(self) -> None:
        self.started: Started | None = None

    def emit(self, event: Event) -> None:
        """Keep it, if it is that."""
        if isinstance(event, Started):
            self.started = event


class Spin:
    """Holds up a forward pass for so long, without sleeping: a pause would let the processor rest."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self, _module: nn.Module, _inputs: Any) -> None:
        """A hook that runs before each forward pass."""
        until_s = time.perf_counter() + self.seconds
        while time.perf_counter() < until_s:
            pass


def main() -> None:
    """Until standard input ends."""
    spin, build = Spin(), assembly.build_model

    def build_held_up(*about: Any, **options: Any) -> nn.Module:
        model = build(*about, **options)
        model.register_forward_pre_hook(spin)
        return model

    assembly.build_model = build_held_up
    for line in sys.stdin:
        asked = json.loads(line)
        spin.seconds = asked["spin_s"]
        starts = Starts()
        report = Report(starts)
        run(parse_spec(asked["spec"]), report, Rank(), time.perf_counter())
        assert starts.started
        told = {"started": starts.started.model_dump(mode="json"), "summary": report.summary.model_dump(mode="json")}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
