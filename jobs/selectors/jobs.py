"""Which jobs a person may see and change, and what a job asks for today."""

from typing import Any

from django.db.models import QuerySet

from jobs.contract.spec import TrainSpec
from jobs.models import Job, Team, User


def visible_jobs(user: User) -> QuerySet[Job]:
    """The jobs of the user's teams, newest first; staff see every job."""
    jobs = Job.objects.select_related("owner", "team", "queue", "last_attempt", "last_attempt__worker")
    jobs = jobs.defer("last_attempt__worker__facts", "last_attempt__worker__catalog")  # long, and of no use here
    return jobs if user.is_staff else jobs.filter(team__in=teams_of(user))


def teams_of(user: User) -> QuerySet[Team]:
    """The teams that the user may look at; all of them for staff."""
    return Team.objects.all() if user.is_staff else Team.objects.filter(members=user)


def may_change(user: User, job: Job) -> bool:
    """Whether the person may cancel, move or otherwise change the job: its owner, and staff."""
    return user.is_staff or job.owner_id == user.pk


def asked_spec(job: Job) -> dict[str, Any]:
    """What the job asked for, without options that exist no more; its length may have been given in epochs."""
    return {"num_steps": None} | {name: value for name, value in job.spec.items() if name in TrainSpec.model_fields}
