"""Where an attempt goes on: the last checkpoint that an earlier attempt at the same job left."""

from dataclasses import dataclass
from pathlib import Path

from jobs.attempt_files import AttemptFiles
from jobs.contract.states import Outcome
from jobs.models import Attempt
from workers.engine.files import CHECKPOINTS, checkpoint_name

# After these a new attempt begins anew: the work was done, or it had gone wrong before the checkpoint was taken.
_NOTHING_TO_GO_ON_FROM = (Outcome.SUCCEEDED, Outcome.DIVERGED)


@dataclass(frozen=True)
class Resumption:
    """A checkpoint's file, the attempt that wrote it, and the last step that it holds."""

    origin: Attempt
    step: int
    path: Path


def find_resumption(attempt: Attempt) -> Resumption | None:
    """The checkpoint furthest into the work, None where the attempt has to begin anew.

    It does where the spec asks for no checkpoints, or their files are not on a volume that this host shares.
    """
    if attempt.job.train_spec.checkpoint_every_steps is None:
        return None
    found = []
    for earlier in attempt.job.attempts.filter(number__lt=attempt.number).order_by("-number"):
        if earlier.outcome in _NOTHING_TO_GO_ON_FROM:
            break
        found += [Resumption(earlier, step, path) for step, path in _checkpoints(earlier)]
    return max(found, key=lambda resumption: resumption.step, default=None)


def resumed_path(attempt: Attempt) -> Path | None:
    """The checkpoint from which an attempt was found to go on; None where it begins anew."""
    if attempt.resumed_from_id is None or attempt.resumed_at_step is None:
        return None
    name = checkpoint_name(attempt.resumed_at_step)
    return AttemptFiles(attempt.resumed_from_id).artifacts / CHECKPOINTS / name


def _checkpoints(attempt: Attempt) -> list[tuple[int, Path]]:
    """Step and file of each checkpoint, whole or not there at all. After the last step the evaluation is left.

    One that is ahead of the stored points does not count: the curve would have a gap that nothing fills.
    """
    files = (AttemptFiles(attempt.pk).artifacts / CHECKPOINTS).glob("step-*.pt")
    steps = [(int(path.stem.removeprefix("step-")), path) for path in files]
    return [(step, path) for step, path in steps if step <= attempt.last_step]
