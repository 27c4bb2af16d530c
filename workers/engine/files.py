"""Where a run keeps what is not an event, and what it continues from; told on the command line, not in the spec."""

import errno
import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from jobs.contract.errors import OutputUnusable, RefusedSpec
from jobs.contract.messages import gettext_noop as _
from jobs.contract.rules.table import refuse
from jobs.contract.spec import TrainSpec

# Options that leave files behind, and their value for none.
_WRITING_OPTIONS = {"checkpoint_every_steps": None, "profile_steps": 0}
_NOWHERE = _("This option writes files. Say where with --artifacts DIR.")
_OTHERS = _(
    "%(folder)s holds checkpoints of another run, up to %(last)s. "
    "Go on from that one, or choose another --artifacts DIR."
)
CHECKPOINTS = "checkpoints"  # the folder under the artifacts


def checkpoint_name(step: int) -> str:
    """The name of the checkpoint that is taken after `step` steps; names sort as steps do."""
    return f"step-{step:09d}.pt"


def list_checkpoints(artifacts: Path) -> list[Path]:
    """The checkpoints under an artifacts folder, by their steps."""
    return sorted((artifacts / CHECKPOINTS).glob("step-*.pt"))


class RunFiles(BaseModel):
    """`artifacts` is the folder that the run may write into, `resume` the checkpoint that it continues from."""

    model_config = ConfigDict(frozen=True)

    artifacts: Path | None = None
    resume: Path | None = None

    def require_for(self, spec: TrainSpec) -> None:
        """Make the folder that the spec's options write into.

        Raises `RefusedSpec` where an option writes files and nobody said where to or another run's are there, and
        `OutputUnusable` where nothing can be written.
        """
        asked = [name for name, nothing in _WRITING_OPTIONS.items() if getattr(spec, name) != nothing]
        if self.artifacts is None and asked:
            raise RefusedSpec([refuse(name, _NOWHERE) for name in asked])
        if self.artifacts is not None and spec.checkpoint_every_steps is not None:
            self._require_no_other_run(self.artifacts)
        if self.artifacts is not None and asked:
            _make_writable(self.artifacts)

    def _require_no_other_run(self, artifacts: Path) -> None:
        """Steps of two runs in one folder would be taken for one run's. A run may go on after the last one there."""
        found = list_checkpoints(artifacts)
        if not found or (self.resume is not None and self.resume.resolve() == found[-1].resolve()):
            return
        folder, last = found[-1].parent, found[-1].name
        raise RefusedSpec([refuse("checkpoint_every_steps", _OTHERS, folder=str(folder), last=last)])


def _make_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputUnusable("--artifacts", folder, error.strerror) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputUnusable("--artifacts", folder, os.strerror(errno.EACCES))
