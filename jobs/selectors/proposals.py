"""What a job whose memory ran out could be run as instead, and whether that was done."""

from dataclasses import dataclass

from jobs.contract.proposals import with_smaller_micro_batch
from jobs.contract.spec import TrainSpec
from jobs.contract.states import Outcome
from jobs.contract.stored import read_stored_spec
from jobs.models import Job
from jobs.selectors.jobs import asked_spec

_IMPORTING = "importing"  # the phase before there is a model, where smaller batches are no help


@dataclass(frozen=True)
class Proposal:
    """The same work in smaller micro-batches, and the job that does it once somebody has queued it."""

    spec: TrainSpec
    job: Job | None


def proposal_for(job: Job) -> Proposal | None:
    """What to run instead of a job whose memory ran out; None where it ended otherwise or nothing is smaller.

    It is told from what was asked, so that a run which the kernel killed before it could propose anything has one too.
    """
    if job.outcome != Outcome.OUT_OF_MEMORY or _phase(job) == _IMPORTING:
        return None
    asked = read_stored_spec(asked_spec(job))
    spec = None if asked.unread else with_smaller_micro_batch(asked.spec)
    return Proposal(spec, Job.objects.filter(smaller_of=job.pk).first()) if spec else None


def _phase(job: Job) -> str:
    error = job.last_attempt.error if job.last_attempt else None
    return str(error.get("phase", "")) if error else ""
