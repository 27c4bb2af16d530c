"""One run as the outside sees it: whatever happens in it, its last line is `finished` and its exit code says how."""

import os
import signal
import sys
from pathlib import Path
from types import FrameType

from jobs.contract.errors import DiskFull, InvalidSpec, OutputUnusable, PitwallError, RankFailed
from jobs.contract.events import Finished
from jobs.contract.findings import Finding, Severity
from jobs.contract.spec import TrainSpec, parse_spec
from jobs.contract.states import Outcome
from workers.engine.environment import environment_of
from workers.engine.failure import Failure, OutOfTime, Terminated, failure_from
from workers.engine.files import RunFiles
from workers.engine.narrator import Narrator
from workers.engine.node import Node
from workers.engine.progress import ProgressLine
from workers.engine.report import Report
from workers.engine.stream import EventStream

_WITHOUT_A_SENTENCE = (PitwallError.exit_code, RankFailed.exit_code)  # of their own: what nobody foresaw


def run_attempt(
    spec_path: Path,
    events_path: Path | None,
    started_s: float,
    files: RunFiles,
    node: Node = Node(),  # noqa: B008 - frozen
    *,
    is_warm: bool = False,
) -> int:
    """Run the spec in a file, report on `events_path` or standard output, and return the exit code.

    `is_warm` says that this process had all its imports done before the run was known.
    """
    try:
        report = _open_report(events_path)
    except OutputUnusable as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    report.summary.started_warm = is_warm
    _listen_to_signals()
    try:
        report.spec = spec = read_spec(spec_path)
        if node.leads:
            signal.setitimer(signal.ITIMER_REAL, spec.time_limit_s or 0)
        files.require_for(spec)
        node.require_for(spec)
        _train(spec, report, started_s, files, node)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except BaseException as error:  # this is the process's boundary
        _take_no_more_signals()
        failure = failure_from(error, report)
        last = Finished(outcome=failure.outcome, summary=report.summary, error=failure.error)
        exit_code = _say_last(report, last, failure.exit_code)
        if _needs_traceback(error, failure):
            sys.stderr.write(failure.error.traceback)
        sys.stderr.write(f"{failure.error.message}\n")
        return exit_code
    _take_no_more_signals()
    return _say_last(report, Finished(outcome=Outcome.SUCCEEDED, summary=report.summary), 0)


def _open_report(events_path: Path | None) -> Report:
    """JSON lines into a file or a pipe, and a line for people on a terminal; the log goes to standard error."""
    if events_path is not None:
        return Report(EventStream.on_file(events_path), Narrator())
    if os.isatty(1):
        log_is_apart = not os.isatty(2)  # asked first, because the terminal's line takes standard output away
        return Report(ProgressLine.on_stdout(), Narrator() if log_is_apart else None)
    return Report(EventStream.on_stdout(), Narrator())


def _listen_to_signals() -> None:
    signal.signal(signal.SIGTERM, _terminate)
    signal.signal(signal.SIGALRM, _run_out_of_time)
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # not where somebody has Ctrl-C ignored
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _take_no_more_signals() -> None:
    """Once is enough: the last line is on its way, and so is the end."""
    for number in (signal.SIGTERM, signal.SIGALRM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)


def _needs_traceback(error: BaseException, failure: Failure) -> bool:
    """A log keeps it of all but a wrong spec. On a terminal an error that has its own sentence needs no stack."""
    if isinstance(error, InvalidSpec):
        return False
    return not sys.stderr.isatty() or failure.exit_code in _WITHOUT_A_SENTENCE


def _say_last(report: Report, last: Finished, exit_code: int) -> int:
    """Write the last line; where that cannot be done either, standard error and the exit code say so."""
    try:
        report.emit(last)
    except OSError as error:
        sys.stderr.write(f"The run's result could not be written: {error.strerror}.\n")
        return exit_code or DiskFull.exit_code
    return exit_code


def _train(spec: TrainSpec, report: Report, started_s: float, files: RunFiles, node: Node) -> None:
    os.environ.update(environment_of(spec))  # before libraries that read it are imported
    # Imported here because a broken spec should not wait for torch, and the launcher's side never needs it.
    if spec.uses_ranks:
        from workers.engine.launch import run_ranks

        run_ranks(spec, report, files, node)
        return
    report.enter("importing")
    from workers.engine.parallel import Rank
    from workers.engine.run import run

    run(spec, report, Rank(), started_s, files)


def read_spec(path: Path) -> TrainSpec:
    """The spec in a file; raises `InvalidSpec` with a sentence."""
    try:
        text = path.read_bytes()
    except OSError as error:
        message, params = "The file %(path)s cannot be read: %(reason)s.", {"path": str(path), "reason": error.strerror}
        finding = Finding(code="unreadable", field="spec", severity=Severity.REFUSE, message=message, params=params)
        raise InvalidSpec([finding]) from error
    return parse_spec(text)


def _run_out_of_time(_signal_number: int, _frame: FrameType | None) -> None:
    raise OutOfTime


def _terminate(_signal_number: int, _frame: FrameType | None) -> None:
    raise Terminated
