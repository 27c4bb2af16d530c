"""Log records that say which attempt they are about, as lines for people or as JSON for machines."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the logging is set up before the models can be loaded
    from jobs.models import Attempt

FIELDS = ("job", "attempt", "fence")

_about: ContextVar[dict[str, int]] = ContextVar("about", default={})  # noqa: B039 never changed in place


def fields_of(attempt: "Attempt") -> dict[str, int]:
    """What a record about an attempt carries, as `extra` of a logging call."""
    return {"job": attempt.job_id, "attempt": attempt.pk, "fence": attempt.fence}


@contextmanager
def about(attempt: "Attempt") -> Iterator[None]:
    """Let every record inside the block say that it is about this attempt."""
    token = _about.set(fields_of(attempt))
    try:
        yield
    finally:
        _about.reset(token)


class AddFields(logging.Filter):
    """Gives each record the fields of the block around it, as far as it has none of its own."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Every record passes."""
        for name in FIELDS:
            if getattr(record, name, None) is None:
                setattr(record, name, _about.get().get(name))
        return True


def _known(record: logging.LogRecord) -> dict[str, Any]:
    fields = {name: getattr(record, name, None) for name in FIELDS}
    return {name: value for name, value in fields.items() if value is not None}


class Lines(logging.Formatter):
    """A line for people: time, level, logger, what happened, and about which attempt."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s%(about)s")

    def format(self, record: logging.LogRecord) -> str:
        """The record's line, with its traceback below it."""
        known = _known(record)
        record.about = f" [{' '.join(f'{name}={value}' for name, value in known.items())}]" if known else ""
        return super().format(record)


class JsonLines(logging.Formatter):
    """One JSON object per line: `at`, `level`, `logger`, `message`, `process`, and what is known of the attempt."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON; a traceback is one of its fields."""
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
        } | _known(record)
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)
