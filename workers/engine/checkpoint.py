"""Checkpoint files: written whole or not at all, the last two kept, and read without running code from them."""

import os
import pickle
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from jobs.contract.choices import DdpCommHook, LrSchedule
from jobs.contract.errors import CheckpointMismatch, CheckpointUnreadable, DiskFull
from jobs.contract.events import Artifact
from jobs.contract.keys import workload
from jobs.contract.messages import gettext_noop as _
from jobs.contract.rules.table import warn
from jobs.contract.spec import TrainSpec
from workers.engine.files import CHECKPOINTS, checkpoint_name, list_checkpoints
from workers.engine.out_of_memory import is_out_of_memory
from workers.engine.parallel import Exchange, Rank
from workers.engine.report import Report
from workers.engine.training_state import PARTS, collect_state, is_sharded, restore_state
from workers.engine.update import Update

FORMAT = 1
NUM_KEPT = 2
# What a file that is no checkpoint of ours makes of being read as one.
_UNREADABLE = (OSError, RuntimeError, EOFError, ValueError, LookupError, TypeError, pickle.UnpicklingError)
# What a state that was made for another model makes of being loaded.
_UNFITTING = (RuntimeError, ValueError, LookupError, TypeError, AttributeError)


@dataclass(frozen=True)
class Checkpoint:
    """A file that was read and found to belong to this job."""

    step: int
    final_losses: list[float]
    num_skipped_steps: int
    state: dict[str, Any]

    def restore(self, model: nn.Module, update: Update, rank: Rank) -> None:
        """Go on from here; the state is given up then, for the run has its own copy."""
        if self.state["is_sharded"] != is_sharded(model):
            raise CheckpointMismatch("The checkpoint was saved with another way of sharding; use its parallelism.")
        try:
            restore_state(self.state, model, update, rank)
        except _UNFITTING as error:
            if is_out_of_memory(error):
                raise
            reason = _reason_of(error)
            raise CheckpointMismatch(f"The checkpoint does not fit this model and optimizer: {reason}.") from error
        self.state.clear()


def read_checkpoint(path: Path, spec: TrainSpec, dataset_revision: str) -> Checkpoint:
    """The checkpoint in a file. Raises `CheckpointUnreadable`, or `CheckpointMismatch` where it is of other work."""
    try:
        saved = torch.load(path, map_location="cpu", weights_only=True)
        if not isinstance(saved, dict) or saved["format"] != FORMAT:
            raise ValueError("another format")
        checkpoint = Checkpoint(saved["step"], saved["final_losses"], saved["num_skipped_steps"], saved["state"])
        work = saved["work"]
        if missing := PARTS - checkpoint.state.keys():
            raise ValueError(f"no {', '.join(sorted(missing))}")
    except _UNREADABLE as error:
        reason = "it is not a whole checkpoint"
        if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
            reason = error.strerror or reason
        raise CheckpointUnreadable(f"The checkpoint {path} cannot be read: {reason}.") from error
    _require_same_work(work, _work_of(spec, dataset_revision))
    if spec.num_steps is not None and checkpoint.step > spec.num_steps:
        raise CheckpointMismatch(
            f"The checkpoint is from step {checkpoint.step}, and the job ends at step {spec.num_steps} already."
        )
    return checkpoint


def _reason_of(error: BaseException) -> str:
    """The first line that says something: torch begins with "Error(s) in loading ...:"."""
    lines = [line.strip().rstrip(".") for line in str(error).splitlines() if line.strip()]
    return next((line for line in lines if not line.endswith(":")), type(error).__name__)


def warn_of_what_begins_anew(spec: TrainSpec, report: Report) -> None:
    """PowerSGD keeps the error of each DDP bucket on each rank, and a new process makes its buckets anew."""
    if spec.ddp_comm_hook is DdpCommHook.POWERSGD:
        message = _("What powersgd left out so far is not in a checkpoint: the losses differ from an unbroken run's.")
        report.warn(warn("ddp_comm_hook", message))


def _work_of(spec: TrainSpec, dataset_revision: str) -> dict[str, Any]:
    """What must be equal for a run to go on; a constant rate may go on for longer than it was meant to."""
    work = workload(spec, dataset_revision) | {"seed": spec.seed}
    if spec.lr_schedule is LrSchedule.CONSTANT:
        del work["num_steps"]
    return work


def _require_same_work(saved: dict[str, Any], asked: dict[str, Any]) -> None:
    names = sorted(name for name in saved.keys() | asked.keys() if saved.get(name) != asked.get(name))
    if names:
        differences = ", ".join(f"{name} is {saved.get(name)} there and {asked.get(name)} here" for name in names)
        raise CheckpointMismatch(f"The checkpoint is of another job: {differences}.")


@dataclass(frozen=True)
class Keeper:
    """Saves a checkpoint every so many steps and after the last one."""

    spec: TrainSpec
    dataset_revision: str
    root: Path
    model: nn.Module
    update: Update
    rank: Rank
    exchange: Exchange
    report: Report
    num_skipped_before: int  # by the scaler, in the run that this one continues

    @property
    def _every(self) -> int:
        assert self.spec.checkpoint_every_steps is not None  # noqa: S101 - nobody is needed otherwise
        return self.spec.checkpoint_every_steps

    def steps_until_next(self, num_done: int) -> int:
        """How many steps may be taken before the next checkpoint is due."""
        return self._every - num_done % self._every

    def save_if_due(self, num_done: int, final_losses: list[float]) -> float:
        """Save after `num_done` steps if it is time to; returns the seconds that it took. All ranks take part."""
        if num_done % self._every and num_done != self.spec.num_steps:
            return 0.0
        began_s = time.perf_counter()
        content = {
            "format": FORMAT,
            "work": _work_of(self.spec, self.dataset_revision),
            "step": num_done,
            "final_losses": final_losses,
            "num_skipped_steps": self.num_skipped_before + (self.update.num_skipped_steps or 0),
            "state": collect_state(self.model, self.update, self.exchange),
        }
        if self.rank.rank == 0:
            self._write(content, checkpoint_name(num_done))
        return time.perf_counter() - began_s

    def _write(self, content: dict[str, Any], name: str) -> None:
        folder = self.root / CHECKPOINTS
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(folder / name, content)
        except RuntimeError as error:  # torch's writer has no error of its own for a full disk
            raise DiskFull(f"The checkpoint {folder / name}") from error
        # Files beyond this step are not this run's, and are nobody's business here.
        for old in [path for path in list_checkpoints(self.root) if path.name <= name][:-NUM_KEPT]:
            old.unlink(missing_ok=True)
        size_bytes = (folder / name).stat().st_size
        self.report.emit(Artifact(name=name, kind="checkpoint", file=f"{CHECKPOINTS}/{name}", size_bytes=size_bytes))


def write_whole(path: Path, content: dict[str, Any]) -> None:
    """Write beside, force to the disk, then rename: a reader finds the old file or all of the new one."""
    part = path.with_suffix(".part")
    try:
        with part.open("wb") as file:
            torch.save(content, file)
            file.flush()
            os.fsync(file.fileno())
        part.rename(path)
    finally:
        part.unlink(missing_ok=True)
