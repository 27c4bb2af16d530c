"""Death travels downward: a process of ours never outlives the one that started it."""

import ctypes
import os
import signal
import sys

PARENT_PID_VARIABLE = "PITWALL_PARENT_PID"  # set by the supervisor for the engine's top process, and taken by it

_PR_SET_PDEATHSIG = 1
_INIT_PID = 1
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def die_with_supervisor() -> None:
    """Tie this process to the supervisor that announced itself; a person's shell announces nothing."""
    supervisor = os.environ.get(PARENT_PID_VARIABLE)
    if supervisor:
        die_with_parent(int(supervisor))


def die_with_launcher() -> None:
    """Tie a rank to its torchrun launcher, which no variable names: a launcher that is gone shows as an adopter.

    Orphans are adopted by init or by the supervisor, which is their subreaper.
    """
    launcher = os.getppid()
    adopters = {_INIT_PID, int(os.environ.get(PARENT_PID_VARIABLE, _INIT_PID))}
    if launcher in adopters:
        os._exit(1)
    die_with_parent(launcher)


def die_with_parent(parent_pid: int) -> None:
    """Have the kernel kill this process when its parent ends; exit now if `parent_pid` is not the parent any more.

    The signal fires when the *thread* that started us ends, so start processes from main threads only. The recheck
    covers a parent that ended before the call.
    """
    if _libc is None:
        raise OSError("Pitwall's engine runs on Linux only.")
    if _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent_pid:
        os._exit(1)
