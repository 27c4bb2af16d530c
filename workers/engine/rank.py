"""One rank of a distributed run, in a process that torchrun started."""

import atexit
import os
import sys
import time
from pathlib import Path

from pydantic import BaseModel

from jobs.contract.events import ErrorInfo, Finished
from jobs.contract.spec import TrainSpec, parse_spec
from jobs.contract.states import Outcome
from workers.engine.failure import failure_from
from workers.engine.files import RunFiles
from workers.engine.report import Report
from workers.engine.stream import EventStream

SPEC_FILE = "spec.json"
FILES_FILE = "files.json"
EVENTS_PIPE = "events"


class RankFailure(BaseModel):
    """What a failing rank leaves behind; the earliest one is the cause, the others are its consequences."""

    failed_at_ns: int  # monotonic clock, which all processes of a host share
    outcome: Outcome
    exit_code: int
    error: ErrorInfo


class Leave:
    """Ends a process that has `done` its work after its exit handlers, before Python takes itself apart.

    FSDP2's mesh keeps the process group, and so Gloo's threads, to the very end. A thread that asks for Python's lock
    while Python goes is ended by force, which C++ answers by aborting a rank whose work is done (seen in one of some
    hundred runs). Exit handlers run last to first: to come last, this one stands before torch is imported.
    """

    def __init__(self) -> None:
        self.done = False
        atexit.register(self._leave)

    def _leave(self) -> None:
        if self.done:  # after a failure the exit code is Python's to say
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)


def run_rank(folder: Path, started_s: float) -> None:
    """Train as the spec in `folder` says; rank 0 reports on the pipe there, and a failure leaves a file there."""
    leave = Leave()
    rank = int(os.environ["RANK"])
    report = Report(EventStream.on_file(folder / EVENTS_PIPE) if rank == 0 else None)
    report.summary.started_warm = False  # what torchrun starts has everything before it
    report.enter("importing")
    report.spec = spec = parse_spec((folder / SPEC_FILE).read_bytes())
    from torch.distributed.elastic.multiprocessing.errors import record  # after the event: importing torch takes long

    record(_train)(spec, report, folder, started_s)
    leave.done = True


def _train(spec: TrainSpec, report: Report, folder: Path, started_s: float) -> None:
    try:
        files = RunFiles.model_validate_json((folder / FILES_FILE).read_bytes())
        from workers.engine.parallel import Rank
        from workers.engine.run import run

        run(spec, report, Rank.from_torchrun(), started_s, files)
    except Exception as error:
        _leave_failure(error, report, folder)
        report.emit(Finished(outcome=Outcome.FAILED, summary=report.summary))  # the launcher's side decides on which
        raise
    report.emit(Finished(outcome=Outcome.SUCCEEDED, summary=report.summary))


def _leave_failure(error: Exception, report: Report, folder: Path) -> None:
    failed_at_ns = time.monotonic_ns()
    rank = int(os.environ["RANK"])
    failure = failure_from(error, report)
    info = failure.error.model_copy(update={"rank": rank})
    left = RankFailure(failed_at_ns=failed_at_ns, outcome=failure.outcome, exit_code=failure.exit_code, error=info)
    unfinished = folder / f"rank-{rank}.part"
    unfinished.write_text(left.model_dump_json())
    unfinished.rename(folder / f"rank-{rank}.failure")
