"""The files of one attempt, under `var/attempts/<id>/`."""

from pathlib import Path

from django.conf import settings


class AttemptFiles:
    """Paths of one attempt's files; all of them may be on a volume that the hosts share."""

    def __init__(self, attempt_id: int) -> None:
        self.folder = settings.VAR / "attempts" / str(attempt_id)

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
        """The folder of checkpoints and profiles."""
        return self.folder / "artifacts"

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
