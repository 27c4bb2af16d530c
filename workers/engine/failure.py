"""Exceptions turned into what a user reads: an outcome, a sentence, an exit code and the traceback behind them."""

import errno
import traceback
from dataclasses import dataclass

from jobs.contract.choices import SdpaBackend
from jobs.contract.errors import (
    CompilerFailed,
    DiskFull,
    InvalidSpec,
    OutOfMemory,
    PitwallError,
    RefusedSpec,
    TimedOut,
)
from jobs.contract.events import ErrorInfo
from jobs.contract.messages import gettext_noop as _
from jobs.contract.rules.table import refuse
from jobs.contract.states import Outcome
from workers.engine.device_mismatch import as_sentence as name_both
from workers.engine.device_mismatch import is_device_mismatch
from workers.engine.out_of_memory import as_sentence, describe_memory, is_out_of_memory, propose
from workers.engine.report import Report

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_KERNEL = "No available kernel"  # of scaled_dot_product_attention, where the one that is forced cannot do it
_NO_SUCH_ATTENTION = _(
    "The kernel %(name)s cannot compute this model's attention here: its mask, its dropout or the size of its heads. "
    "Choose another one or auto."
)
_COMPILER_ERRORS = ("InvalidCxxCompiler", "CppCompileError")  # Inductor's, often wrapped in others


class Terminated(BaseException):
    """SIGTERM arrived; not an Exception, so that no library takes it for an error it may handle."""


class OutOfTime(BaseException):
    """The time limit has passed; not an Exception for the same reason."""


@dataclass(frozen=True)
class Failure:
    """How a run ended badly."""

    outcome: Outcome
    exit_code: int
    error: ErrorInfo


class RunFailed(Exception):
    """A run in other processes failed, and they said how."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.error.message)


def failure_from(error: BaseException, report: Report) -> Failure:
    """The failure that `error` means at this point of the run."""
    if isinstance(error, RunFailed):
        return error.failure
    known = _as_known_error(error, report)
    if isinstance(known, PitwallError):
        outcome, exit_code, message = known.outcome, known.exit_code, str(known)
    elif isinstance(known, Terminated | KeyboardInterrupt):
        outcome, message = Outcome.CANCELLED, "The run was told to stop."
        exit_code = 143 if isinstance(known, Terminated) else 130  # 128 + signal, as shells have it
    else:
        outcome, exit_code, message = Outcome.FAILED, 1, sentence_of(known)
    info = ErrorInfo(
        type=type(known).__name__,
        message=message,
        traceback="".join(traceback.format_exception(error)),
        phase=report.phase,
        step=report.step,
        findings=known.findings if isinstance(known, InvalidSpec) else [],
        memory=describe_memory(error, report) if isinstance(known, OutOfMemory) else None,
        proposed_spec=propose(report) if isinstance(known, OutOfMemory) else None,
    )
    return Failure(outcome, exit_code, info)


def sentence_of(error: BaseException) -> str:
    """The error's type and the first line of its text."""
    first_line = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {first_line}" if first_line else type(error).__name__


def _as_known_error(error: BaseException, report: Report) -> BaseException:
    if isinstance(error, PitwallError):
        return error
    if isinstance(error, OutOfTime):
        return TimedOut((report.spec and report.spec.time_limit_s) or 0.0)
    if is_out_of_memory(error):
        return as_sentence(report, sentence_of(error), propose(report))
    if is_device_mismatch(error):
        return name_both(error)
    if _NO_KERNEL in str(error) and (forced := _forced_kernel(report)):
        return RefusedSpec([refuse("sdpa_backend", _NO_SUCH_ATTENTION, name=forced)])
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return DiskFull(str(error.filename or "A file"))
    if any(name in f"{type(error).__name__} {error}" for name in _COMPILER_ERRORS):
        return CompilerFailed(
            "torch.compile could not build its code: the C++ compiler on this worker is missing or broken. "
            "Install g++ there, or set compile_mode to off."
        )
    return error


def _forced_kernel(report: Report) -> str | None:
    """The attention kernel that was asked for by name, if any was."""
    backend = report.spec.sdpa_backend if report.spec else SdpaBackend.AUTO
    return None if backend is SdpaBackend.AUTO else backend.value
