"""One of two ranks that goes through many cases in one process: starting two processes for each case takes too long.

`python one_of_two_ranks.py FOLDER RANK` takes the cases from FOLDER/cases.json; rank 0 leaves each case's events in
FOLDER/<number>.jsonl. How ranks are started, named and ended for real is what `test_ranks.py` looks at.
"""

import gc
import json
import os
import socket
import sys
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch.distributed as dist

from jobs.contract.errors import Diverged
from jobs.contract.events import Finished
from jobs.contract.spec import TrainSpec
from jobs.contract.states import Outcome
from workers.engine import run as engine_run
from workers.engine.files import RunFiles
from workers.engine.parallel import Rank
from workers.engine.report import Report
from workers.engine.stream import EventStream

_load = engine_run.load_dataset


@cache
def load_small(*arguments: Any) -> Any:
    """The data set, read once and with little to evaluate."""
    dataset = _load(*arguments)
    whole = dataset.evaluation
    labels = None if whole.labels is None else whole.labels[:16]
    return replace(dataset, evaluation=replace(whole, samples=whole.samples[:16], labels=labels))


def main(folder: Path, rank: int) -> None:
    """Take every case in turn."""
    asked = json.loads((folder / "cases.json").read_text())
    if asked["evaluates_little"]:
        engine_run.load_dataset = load_small
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
    for number, case in enumerate(asked["cases"]):
        os.environ["MASTER_PORT"] = _port(folder / f"{number}.port", rank)
        report = Report(EventStream.on_file(folder / f"{number}.jsonl") if rank == 0 else None)
        files = RunFiles(**case.pop("files", {}))
        outcome = _end_of(TrainSpec(**case), report, rank, files)
        gc.collect()  # the model must go before its group
        if dist.is_initialized():  # after an exception the engine leaves that to its process's end
            dist.destroy_process_group()
        report.emit(Finished(outcome=outcome, summary=report.summary))


def _port(told: Path, rank: int) -> str:
    """Where the ranks meet for a case: rank 0 finds a free port and tells it just before it listens there."""
    if rank == 0:
        with socket.create_server(("127.0.0.1", 0)) as free:
            told.with_suffix(".new").write_text(str(free.getsockname()[1]))
        told.with_suffix(".new").rename(told)
    parent = os.getppid()
    while not told.exists():  # whoever started both ends this one when the other fails
        if os.getppid() != parent:
            sys.exit("who started the ranks is gone")
        time.sleep(0.01)
    return told.read_text()


def _end_of(spec: TrainSpec, report: Report, rank: int, files: RunFiles) -> Outcome:
    try:
        engine_run.run(spec, report, Rank(rank, rank, 2), time.perf_counter(), files)
    except Diverged:
        return Outcome.DIVERGED
    return Outcome.SUCCEEDED


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
