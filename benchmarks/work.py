"""The work that everyone is measured on, as specs of the engine. One thread each: see README.md."""

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from benchmarks.processes import Spec, engine_command

NUM_THREADS = 1
ENDLESS = 1_000_000  # steps: more than anyone takes before being ended

_COMMON: dict[str, Any] = {
    "optimizer": "adam",
    "device": "cpu",
    "num_threads": NUM_THREADS,
    "phase_steps": 0,
    "seed": 0,
}
WORKLOADS: dict[str, dict[str, Any]] = {
    "mlp/digits": _COMMON | {"model": "mlp", "dataset": "digits", "micro_batch_size": 32},
    "convnet/digits": _COMMON | {"model": "convnet", "dataset": "digits", "micro_batch_size": 32},
    "gpt-tiny/stdlib-text": _COMMON | {"model": "gpt-tiny", "dataset": "stdlib-text", "micro_batch_size": 16},
}


@contextmanager
def commands_of(workload: str, names: list[str], **engine_options: Any) -> Iterator[dict[str, list[str]]]:
    """Command lines that train a workload without end: `engine`, or a loop of `benchmarks.loops` by name."""
    spec: Spec = WORKLOADS[workload] | {"num_steps": ENDLESS}
    with ExitStack() as stack:
        engine = stack.enter_context(engine_command(spec | engine_options))
        loop = [sys.executable, "-m", "benchmarks.loops"]
        yield {name: engine if name == "engine" else [*loop, name, json.dumps(spec)] for name in names}
