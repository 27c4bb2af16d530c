"""A distributed run from the outside: starts torchrun, passes rank 0's events on, finds out which rank failed first.

Never imports torch. Everything that this process starts dies with it: the launcher by a signal that it asks the
kernel for before it becomes torchrun, each rank by tying itself to the launcher.
"""

import os
import re
import selectors
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from jobs.contract.errors import PitwallError, RankFailed
from jobs.contract.events import ErrorInfo, Event, Finished, Phase, Points, parse_event
from jobs.contract.spec import TrainSpec
from workers.engine.catalog import read_catalog
from workers.engine.checks import require_allowed
from workers.engine.death import die_with_parent
from workers.engine.environment import environment_of
from workers.engine.facts import environment_for_children, num_usable_cores, read_host_facts_apart
from workers.engine.failure import Failure, RunFailed
from workers.engine.files import RunFiles
from workers.engine.node import Node
from workers.engine.rank import EVENTS_PIPE, FILES_FILE, SPEC_FILE, RankFailure
from workers.engine.report import Report
from workers.engine.threads import default_num_threads

_POLL_S = 0.1
_STDERR_TAIL_BYTES = 32 * 1024
# torchrun's table of failed ranks, the only place that tells how a rank ended which could not speak for itself.
_EXIT_CODES = re.compile(r"rank\s*:\s*(\d+) \(local_rank: \d+\)\s+exitcode\s*:\s*(-?\d+)")


def run_ranks(spec: TrainSpec, report: Report, files: RunFiles, node: Node) -> None:
    """Train as `spec` says on the ranks of this host; raises `RunFailed` with the first failure among them."""
    require_allowed(spec, read_host_facts_apart(), read_catalog())  # before anything starts; rank 0 tells the warnings
    report.enter("launching")
    with TemporaryDirectory(prefix="pitwall-") as name:
        folder = Path(name)
        (folder / SPEC_FILE).write_text(spec.model_dump_json())
        (folder / FILES_FILE).write_text(files.model_dump_json())
        os.mkfifo(folder / EVENTS_PIPE)
        with Relay(folder / EVENTS_PIPE, report) as relay, _launcher(spec, folder, node) as launcher:
            exit_code = relay.run_until_end(launcher)
        if exit_code != 0 or (node.leads and not relay.finished):  # only node 0 has the rank that reports
            raise RunFailed(first_failure(folder, exit_code, relay.stderr_tail, report))


@contextmanager
def _launcher(spec: TrainSpec, folder: Path, node: Node) -> Iterator[subprocess.Popen[bytes]]:
    """torchrun while the block runs; its ranks end with it."""
    engine_pid = os.getpid()
    launcher = subprocess.Popen(
        torchrun_command(spec, folder, node),
        env=rank_environment(spec, node),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: die_with_parent(engine_pid),
    )
    try:
        yield launcher
    finally:
        launcher.kill()
        launcher.wait()


def torchrun_command(spec: TrainSpec, folder: Path, node: Node) -> list[str]:
    """One rank per device on this host."""
    return [
        *(sys.executable, "-m", "torch.distributed.run"),
        *("--nnodes", str(spec.num_nodes), "--nproc-per-node", str(spec.num_devices)),
        *node.torchrun_options,
        *("--max-restarts", "0"),
        *("--log-dir", str(folder / "logs")),
        *("-m", "workers.engine", "rank", str(folder)),
    ]


def rank_environment(spec: TrainSpec, node: Node) -> dict[str, str]:
    """The environment of torchrun and its ranks; what is set already stays."""
    environment = environment_for_children() | environment_of(spec) | node.environment
    # Without this torchrun sets one thread for each rank, whatever the host has.
    num_threads = spec.num_threads or default_num_threads(num_usable_cores(), spec.num_local_ranks)
    environment["OMP_NUM_THREADS"] = str(num_threads)
    return environment


class Relay:
    """Passes on what the ranks say: events to the report's stream, standard error to ours where that is a log."""

    def __init__(self, pipe: Path, report: Report) -> None:
        # Open for writing as well: the pipe then never reports its end while no rank has it open.
        self._pipe = os.open(pipe, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._report = report
        self._rest = b""  # a line's beginning, until its end arrives
        self.finished = False
        self.stderr_tail = b""

    def __enter__(self) -> "Relay":
        return self

    def __exit__(self, *_exception: object) -> None:
        os.close(self._pipe)

    def run_until_end(self, launcher: subprocess.Popen[bytes]) -> int:
        """Relay until the launcher has ended; returns its exit code."""
        assert launcher.stderr is not None  # noqa: S101 - opened as a pipe
        os.set_blocking(launcher.stderr.fileno(), False)
        with selectors.DefaultSelector() as selector:
            selector.register(self._pipe, selectors.EVENT_READ)
            selector.register(launcher.stderr, selectors.EVENT_READ)
            while launcher.poll() is None:
                selector.select(_POLL_S)
                self._drain(launcher.stderr)
        self._drain(launcher.stderr)
        return launcher.returncode

    def _drain(self, stderr: IO[bytes]) -> None:
        while chunk := _read_available(self._pipe):
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            for line in lines:
                self._pass_on(line)
        while chunk := _read_available(stderr.fileno()):
            if not sys.stderr.isatty():  # there the run's last sentence stands for the ranks' tracebacks
                sys.stderr.buffer.write(chunk)
                sys.stderr.buffer.flush()
            self.stderr_tail = (self.stderr_tail + chunk)[-_STDERR_TAIL_BYTES:]

    def _pass_on(self, line: bytes) -> None:
        event: Event = parse_event(line)
        if isinstance(event, Finished):  # the last word is ours, once the launcher has ended
            self.finished = True
            self._report.summary = event.summary
            return
        if isinstance(event, Phase):
            self._report.phase = event.name
        if isinstance(event, Points):
            self._report.step = event.steps[-1]
        self._report.emit(event)


def _read_available(fd: int) -> bytes:
    try:
        return os.read(fd, 1 << 20)
    except BlockingIOError:
        return b""


def first_failure(folder: Path, exit_code: int, stderr_tail: bytes, report: Report) -> Failure:
    """What went wrong first: a rank killed by a signal, else the earliest failure that a rank left behind.

    A killed rank breaks its peers' connections, so that they fail too and, unlike it, tell of it.
    """
    text = stderr_tail.decode(errors="replace")
    for rank, code in ((int(rank), int(code)) for rank, code in _EXIT_CODES.findall(text)):
        if code < 0 and -code != signal.SIGTERM:  # by SIGTERM torchrun itself ends the others
            name = signal.Signals(-code).name
            return _rank_failed(rank, f"it was killed by {name}{_MEANING.get(name, '')}", text, report)
    left = [RankFailure.model_validate_json(path.read_bytes()) for path in folder.glob("rank-*.failure")]
    if not left:
        return _rank_failed(None, f"the launcher ended with exit code {exit_code} and no rank said why", text, report)
    first = min(left, key=lambda failure: failure.failed_at_ns)
    if first.error.type in {error.__name__ for error in _named_errors()}:
        return Failure(first.outcome, first.exit_code, first.error)
    failure = _rank_failed(first.error.rank, first.error.message, first.error.traceback, report)
    context = {"phase": first.error.phase, "step": first.error.step}
    return Failure(failure.outcome, failure.exit_code, failure.error.model_copy(update=context))


_MEANING = {"SIGKILL": ", which is also how the kernel ends a process when memory runs out"}


def _rank_failed(rank: int | None, reason: str, traceback: str, report: Report) -> Failure:
    message = f"Rank {rank} failed: {reason}." if rank is not None else f"The run failed: {reason}."
    info = ErrorInfo(
        type=RankFailed.__name__,
        message=message,
        traceback=traceback,
        phase=report.phase,
        step=report.step,
        rank=rank,
    )
    return Failure(RankFailed.outcome, RankFailed.exit_code, info)


def _named_errors() -> Iterator[type[PitwallError]]:
    waiting = [PitwallError]
    while waiting:
        error = waiting.pop()
        waiting += error.__subclasses__()
        yield error
