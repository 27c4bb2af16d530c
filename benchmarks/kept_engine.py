"""An engine that stays up between runs, as a spare does in the product: what is measured is steps, not starts."""

import json
import subprocess
import sys

from benchmarks.processes import ROOT, Failed, Spec, environment
from benchmarks.work import NUM_THREADS
from jobs.contract.events import Started
from jobs.contract.metrics import Summary


class KeptEngine:
    """The process (`kept_engine_process.py`), and what it says."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "benchmarks.kept_engine_process"]
        pipe, env = subprocess.PIPE, environment(NUM_THREADS)
        self._process = subprocess.Popen(command, cwd=ROOT, env=env, stdin=pipe, stdout=pipe, text=True)

    def run(self, spec: Spec, spin_s: float = 0.0) -> tuple[Started, Summary]:
        """What the run said at its start and at its end; each of its steps is held up for `spin_s`."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({"spec": dict(spec), "spin_s": spin_s}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise Failed(f"the engine ended in a run of {dict(spec)}; its own words stand above")
        told = json.loads(line)
        return Started.model_validate(told["started"]), Summary.model_validate(told["summary"])

    def end(self) -> None:
        """It is not needed any more."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()
