"""What is exported, and where its bytes go on their way out."""

from dataclasses import dataclass
from datetime import datetime

from jobs.curves import Curve


@dataclass(frozen=True)
class Origin:
    """Which run the points are of."""

    job: int
    attempt: int  # its number within the job
    began_at: datetime


@dataclass(frozen=True)
class Series:
    """One series at full resolution."""

    name: str
    unit: str
    curve: Curve


class Outbox:
    """A file to write to, whose content is taken away piece by piece."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> int:
        """Keep the bytes."""
        self._parts.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """What was written can still be taken."""

    def take(self) -> bytes:
        """What was written since the last time."""
        content, self._parts = b"".join(self._parts), []
        return content
