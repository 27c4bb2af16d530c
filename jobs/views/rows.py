"""A job as lists show it: one line."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.db.models import Prefetch, QuerySet
from django.utils.translation import get_language

from jobs.contract.spec import TrainSpec
from jobs.forms.run_list import JOB
from jobs.messages import option_title
from jobs.models import Attempt, Job, User
from jobs.models.figures import RANKED_METRICS
from jobs.selectors.jobs import visible_jobs
from jobs.selectors.json_value import JsonNumber
from jobs.selectors.run_fields import Part, run_fields

# What stands under the job's name already, or goes without saying.
_NOT_IN_CHIPS = ("task", "model", "dataset")

# The columns for which a job's relation is read.
_SHOWN_IN: "dict[str | Prefetch[Any], set[str]]" = {
    "owner": {"owner"},
    "team": {"team"},
    "queue": {"queue"},
    Prefetch("tags", to_attr="listed_tags"): {"tag", JOB},
}

_LONG = ("error", "findings", "versions", "hardware", "artifacts", "resolved_spec")


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
    total_steps: int | None  # None until the engine has resolved it
    loss: float | None


def listed_jobs(user: User, columns: Iterable[str] = ()) -> QuerySet[Job]:
    """The jobs that a person sees, with what these columns of them need and nothing that is long."""
    fields, names = run_fields(), {*columns}
    figures = {name for name in names if name in fields and fields[name].part is Part.FIGURE}
    long = [*_LONG] if figures - {*RANKED_METRICS} else [*_LONG, "summary"]
    jobs = visible_jobs(user).defer(None).select_related(None).select_related("last_attempt")
    jobs = jobs.defer("cancel_reason", *(f"last_attempt__{name}" for name in long))
    # Few people, teams and queues own many runs: each is read once, and only where it is shown.
    jobs = jobs.prefetch_related(*(related for related, shown_in in _SHOWN_IN.items() if names & shown_in))
    return jobs.annotate(resolved_num_steps=JsonNumber("last_attempt__resolved_spec", "num_steps"))


def job_row(job: Job) -> JobRow:
    """The line of one job as `listed_jobs` reads it."""
    attempt = job.last_attempt
    resolved: float | None = getattr(job, "resolved_num_steps", None)
    return JobRow(
        job=job,
        attempt=attempt,
        total_steps=int(resolved) if resolved else job.spec.get("num_steps"),
        loss=_first(attempt.final_eval_loss, attempt.final_train_loss) if attempt else None,
    )


@cache
def _defaults() -> dict[str, Any]:
    """The default of every option that a chip may tell of."""
    defaults = TrainSpec().model_dump(mode="json")
    return {name: defaults[name] for name in TrainSpec.model_fields if name not in _NOT_IN_CHIPS}


@cache
def _title(name: str, _language: str | None) -> str:
    return option_title(name)


def chips(spec: dict[str, Any]) -> list[Chip]:
    """The options that differ from their defaults."""
    chosen = [name for name, default in _defaults().items() if spec.get(name, default) != default]
    language = get_language()
    return [Chip(name, _title(name, language), spec[name]) for name in chosen]


def change_chips(changes: Mapping[str, Any]) -> list[Chip]:
    """What a configuration changes, in the order of the spec; a change back to a default is one too."""
    known = [name for name in TrainSpec.model_fields if name in changes]  # PostgreSQL keeps no order of keys
    gone = [name for name in changes if name not in TrainSpec.model_fields]
    return [Chip(name, option_title(name), changes[name]) for name in [*known, *gone]]


def total_steps(job: Job) -> int | None:
    """Steps of the whole run."""
    resolved = job.last_attempt.resolved_spec if job.last_attempt else None
    steps: int | None = (resolved or job.spec).get("num_steps")
    return steps


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)
