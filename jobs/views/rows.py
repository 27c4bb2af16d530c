"""A job as lists show it: one line."""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext

from jobs.contract.spec import TrainSpec
from jobs.models import Attempt, Job

# What stands under the job's name already, or goes without saying.
_NOT_IN_CHIPS = ("task", "model", "dataset")


@dataclass(frozen=True)
class Chip:
    """One option that was chosen."""

    name: str
    label: str
    value: Any


@dataclass(frozen=True)
class JobRow:
    """A job and what its line shows."""

    job: Job
    attempt: Attempt | None
    chips: list[Chip]
    total_steps: int | None  # None until the engine has resolved it
    loss: float | None
    memory_bytes: int | None


def job_row(job: Job) -> JobRow:
    """The line of one job; no query where its last attempt came with it."""
    attempt = job.last_attempt
    return JobRow(
        job=job,
        attempt=attempt,
        chips=chips(job.spec),
        total_steps=total_steps(job),
        loss=_first(attempt.final_eval_loss, attempt.final_train_loss) if attempt else None,
        memory_bytes=_first(attempt.peak_allocated_bytes, attempt.peak_rss_bytes) if attempt else None,
    )


def chips(spec: dict[str, Any]) -> list[Chip]:
    """The options that differ from their defaults."""
    defaults = TrainSpec().model_dump(mode="json")
    return [
        Chip(name, gettext(field.title or name), spec[name])
        for name, field in TrainSpec.model_fields.items()
        if name not in _NOT_IN_CHIPS and name in spec and spec[name] != defaults[name]
    ]


def total_steps(job: Job) -> int | None:
    """Steps of the whole run."""
    resolved = job.last_attempt.resolved_spec if job.last_attempt else None
    steps: int | None = (resolved or job.spec).get("num_steps")
    return steps


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)
