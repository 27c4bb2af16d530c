"""What a fresh installation gets: an admin, a team, a queue, and a small study of real runs to look at."""

import secrets
from pathlib import Path

from django.conf import settings
from django.db import transaction

from jobs.contract.plan import Arrangement, StudyPlan
from jobs.contract.spec import TrainSpec
from jobs.models import Membership, Queue, Team, User
from jobs.services.studies import create_study

ADMIN_NAME = "admin"

DEMO_NAME = "How to take 64 digits a step"


def demo_plan() -> StudyPlan:
    """The first run's study: a batch in eight parts, as on a small device, against one in one piece, and in bf16."""
    base = TrainSpec.model_validate(
        {"model": "mlp", "dataset": "digits", "num_steps": 1200, "micro_batch_size": 8, "grad_accum_steps": 8}
    )
    at_once = {"micro_batch_size": 64, "grad_accum_steps": 1}
    return StudyPlan(
        base=base.model_dump(mode="json"),
        arrangement=Arrangement.LIST,
        configurations=[at_once, at_once | {"precision": "bf16-mixed"}],
        num_repeats=5,
    )


def password_file() -> Path:
    """Where the first admin's password is kept, readable by its owner only."""
    return settings.VAR / "admin_password"


def prepare(*, with_demo: bool) -> bool:
    """Make the first admin, team and queue where there is no user yet; returns whether it did."""
    if User.objects.exists():
        return False
    password = secrets.token_urlsafe(12)
    with transaction.atomic():
        admin = User.objects.create_superuser(ADMIN_NAME, password=password)
        team = Team.objects.create(name="Pit crew")
        Membership.objects.create(user=admin, team=team)
        queue, _ = Queue.objects.get_or_create(name="default", defaults={"description": "Every worker serves it"})
        if with_demo:
            create_study(owner=admin, team=team, queue=queue, plan=demo_plan(), name=DEMO_NAME)
    _keep_password(password)
    return True


def _keep_password(password: str) -> None:
    path = password_file()
    path.touch(mode=0o600)
    path.write_text(password + "\n")
