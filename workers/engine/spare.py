"""An engine that waits for its run with everything imported and one run behind it, so that the next starts at once.

What a run needs of the environment comes with it, so CUDA may not start before. A run for which that is too late, and
one whose code is not what was imported any more, begin anew: this process becomes an engine that starts cold.
"""

import ctypes
import gc
import os
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from pydantic import BaseModel, ConfigDict

# No GPU is there for what happens before a run is known, and none is asked: CUDA reads its variables only once.
_WITHOUT_GPUS = {"CUDA_VISIBLE_DEVICES": "", "PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
_GPU_FILES = "/dev/nvidia"
_OWN_NAME = Path("/proc/self/comm")

WARM_NAME = "pitwall-spare"  # of the process while it waits, for whoever looks at a list of processes


class Assignment(BaseModel):
    """What a spare is told: the command line of a run, all of its environment, and the file for what it prints."""

    model_config = ConfigDict(frozen=True)

    arguments: list[str]
    environment: dict[str, str]
    log: Path

    def to_line(self) -> bytes:
        """As it travels to the spare's standard input."""
        return self.model_dump_json().encode() + b"\n"


def wait_for_assignment() -> Assignment | None:
    """The one that comes on standard input; None where that ends, because nobody needs a spare any more."""
    name = _OWN_NAME.read_text()
    _OWN_NAME.write_text(WARM_NAME)
    line = sys.stdin.readline()
    _OWN_NAME.write_text(name)
    return Assignment.model_validate_json(line) if line else None


def take_on(assignment: Assignment) -> None:
    """Make this process's surroundings what they would be had it been started for the run."""
    os.environ.clear()
    os.environ.update(assignment.environment)
    with assignment.log.open("ab") as log, Path(os.devnull).open("rb") as nothing:
        for fd, file in ((0, nothing), (1, log), (2, log)):
            os.dup2(file.fileno(), fd)


def start_cold(arguments: Sequence[str]) -> NoReturn:
    """Become a new engine with the same process id, for what has to be there before torch is imported."""
    os.execv(sys.executable, [sys.executable, "-m", "workers.engine", *arguments])  # noqa: S606 no shell wanted


def warm_up() -> None:
    """Take one whole run on the CPU, told to nobody, and leave nothing of it but what was imported."""
    os.environ |= _WITHOUT_GPUS
    import torch

    from jobs.contract.spec import DeviceKind, TrainSpec
    from workers.engine.parallel import Rank
    from workers.engine.report import Report
    from workers.engine.run import run

    num_threads = torch.get_num_threads()
    spec = TrainSpec(model="mlp", dataset="digits", device=DeviceKind.CPU, micro_batch_size=16, num_steps=3)
    run(spec, Report(None), Rank(), 0.0)
    torch.set_num_threads(num_threads)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def forget_peaks() -> None:
    """The process's peak memory counts from here: what was before is no part of the run."""
    from workers.engine.memory import reset_peaks

    reset_peaks([])


def has_touched_gpus() -> bool:
    """Whether this process has a GPU open: what CUDA has read of the environment by then it does not read again."""
    return any(_target(link).startswith(_GPU_FILES) for link in Path("/proc/self/fd").iterdir())


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:  # the one by which the folder was listed
        return ""


@dataclass(frozen=True)
class Code:
    """The folders where packages are and the modules' files outside of them, each with when it changed last.

    Whatever is installed or removed changes its folder, so that the thousands of files in there need no look.
    """

    changed_ns: dict[str, int | None]

    @classmethod
    def imported(cls) -> "Code":
        """As it is on disk now."""
        installed = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
        files = {getattr(module, "__file__", None) or "" for module in list(sys.modules.values())}
        own = {file for file in files if file and not file.startswith(installed)}
        # The first folder is the one that this process was started in; anything may be written there.
        return cls({path: _changed_ns(path) for path in {*own, *sys.path[1:]}})

    @property
    def is_current(self) -> bool:
        """Whether nothing of it has changed since."""
        return all(_changed_ns(path) == changed_ns for path, changed_ns in self.changed_ns.items())


def _changed_ns(path: str) -> int | None:
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:
        return None
