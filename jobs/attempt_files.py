"""The files of one attempt, under `var/attempts/<id>/`; its other nodes have a folder each in there."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from django.conf import settings


class AttemptFiles:
    """Paths of one attempt's files; all of them may be on a volume that the hosts share."""

    def __init__(self, attempt_id: int, node_rank: int = 0) -> None:
        self._attempt_folder = settings.VAR / "attempts" / str(attempt_id)
        self.folder = self._attempt_folder / f"node-{node_rank}" if node_rank else self._attempt_folder

    @property
    def spec(self) -> Path:
        """The spec that the engine reads."""
        return self.folder / "spec.json"

    @property
    def events(self) -> Path:
        """What the engine reports, a JSON object per line; also the spool while the database is away."""
        return self.folder / "events.jsonl"

    @property
    def artifacts(self) -> Path:
        """The folder of checkpoints and profiles, one for all nodes."""
        return self._attempt_folder / "artifacts"

    @property
    def log(self) -> Path:
        """What the engine and its libraries print."""
        return self.folder / "log.txt"

    @property
    def supervisor_log(self) -> Path:
        """What the supervisor prints."""
        return self.folder / "supervisor.txt"


def tail(path: Path, max_bytes: int = 4000) -> str:
    """The end of a text file, empty where there is none."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - max_bytes))
        return file.read().decode(errors="replace")


def open_inside(root: Path, relative: str) -> BinaryIO | None:
    """A regular file below `root` by its relative path; None where there is none, or only through a link."""
    path = root / relative
    try:
        if path.resolve() != root.resolve() / relative or not path.resolve().is_relative_to(root.resolve()):
            return None
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    return os.fdopen(descriptor, "rb")
