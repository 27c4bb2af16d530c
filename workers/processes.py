"""Process trees on Linux: keeping hold of them, and ending them until nothing is left."""

import ctypes
import math
import signal
import time
from collections.abc import Iterable

import psutil

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> None:
    """Make orphaned descendants this process's children, so that none escapes `descendants`."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Ask the kernel for SIGTERM when the thread that started this process ends."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl failed")


def descendants() -> list[psutil.Process]:
    """All living processes below this one, whatever session or group they are in."""
    return [process for process in psutil.Process().children(recursive=True) if is_alive(process)]


def end_descendants(grace_s: float, give_up_s: float = math.inf) -> list[psutil.Process]:
    """SIGTERM to every descendant, and SIGKILL after `grace_s` seconds, again and again until none is left.

    Without grace SIGKILL comes at once. Returns what is left `give_up_s` seconds later all the same: a process that
    waits for a device in the kernel does not end before the device answers.
    """
    if grace_s > 0:
        _send(signal.SIGTERM, descendants())
    kill_at = time.monotonic() + grace_s
    while left := descendants():
        if time.monotonic() >= kill_at + give_up_s:
            return left
        if time.monotonic() >= kill_at:
            kill(left)
        time.sleep(0.02)
    return []


def kill(processes: Iterable[psutil.Process]) -> None:
    """SIGKILL to each of them."""
    _send(signal.SIGKILL, processes)


def in_words(processes: Iterable[psutil.Process]) -> str:
    """Name and id of each, for a person to look for."""
    return ", ".join(f"{_name(process)} ({process.pid})" for process in processes)


def _name(process: psutil.Process) -> str:
    try:
        return str(process.name())
    except psutil.Error:
        return "process"


def is_running(pid: int | None, name: str, value: str) -> bool:
    """Whether a process of that id lives that was started with `name=value` (ids are used again by the kernel)."""
    if pid is None:
        return False
    try:
        return _has_variable(psutil.Process(pid), name, value)
    except psutil.Error:
        return False


def processes_with_variable(name: str, value: str) -> list[psutil.Process]:
    """The living processes that were started with `name=value`; those that may not be read are left out."""
    return [process for process in psutil.process_iter() if _has_variable(process, name, value)]


def _has_variable(process: psutil.Process, name: str, value: str) -> bool:
    try:
        return is_alive(process) and process.environ().get(name) == value
    except psutil.Error:
        return False


def is_alive(process: psutil.Process) -> bool:
    """Whether it has not ended; one whose main thread is gone has, though others may take a moment more."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _send(number: signal.Signals, processes: Iterable[psutil.Process]) -> None:
    for process in processes:
        try:
            process.send_signal(number)
        except psutil.Error:
            continue  # it ended by itself
