"""A job's spec as it ran, and a value as people write it."""

from typing import Any

from django.utils.translation import gettext

from jobs.models import Job

ABSENT = "–"


def known_spec(job: Job) -> dict[str, Any]:
    """The spec as it ran, every open choice resolved; as it was asked for where it has not run yet."""
    resolved: dict[str, Any] | None = job.last_attempt.resolved_spec if job.last_attempt else None
    stored: dict[str, Any] = job.spec
    return resolved or stored


def in_words(value: Any) -> str:
    """A value as a label holds it; a dash where there is none."""
    if value is None or value == "":
        return ABSENT
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    return f"{value:g}" if isinstance(value, float) else str(value)
