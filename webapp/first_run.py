"""What a fresh installation gets: an admin, a team, a queue, and a small study of real jobs to look at."""

import secrets
from pathlib import Path

from django.conf import settings
from django.db import transaction

from jobs.contract.spec import TrainSpec, parse_spec
from jobs.models import Membership, Queue, Team, User
from jobs.services.submit import submit_job

ADMIN_NAME = "admin"

_TEXT = {"model": "gpt-tiny", "dataset": "stdlib-text", "num_steps": 400, "micro_batch_size": 16}
_DIGITS = {"model": "convnet", "dataset": "digits", "num_steps": 600, "micro_batch_size": 64}
_DEMO = [
    ("Digits, plain", _DIGITS),
    ("Text, fp32", _TEXT | {"precision": "fp32"}),
    ("Text, bf16-mixed", _TEXT | {"precision": "bf16-mixed"}),
    ("Digits, accumulated", _DIGITS | {"micro_batch_size": 32, "grad_accum_steps": 2}),
]


def demo_specs() -> list[tuple[str, TrainSpec]]:
    """The names and specs of the first run's jobs."""
    return [(name, parse_spec(values)) for name, values in _DEMO]


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
        for name, spec in demo_specs() if with_demo else []:
            submit_job(owner=admin, team=team, queue=queue, spec=spec, name=name)
    _keep_password(password)
    return True


def _keep_password(password: str) -> None:
    path = password_file()
    path.touch(mode=0o600)
    path.write_text(password + "\n")
