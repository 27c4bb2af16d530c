"""`manage.py setup`: brings database and static files up to date, and makes the first admin on an empty one."""

from argparse import ArgumentParser
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand

from jobs.models import Attempt, Board
from webapp.first_run import ADMIN_NAME, password_file, prepare


class Command(BaseCommand):
    """Safe to run at every start."""

    help = "Migrate, collect static files, and make the first admin, team and queue if there is no user yet."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """A demo study is for a first look, not for a team's server."""
        parser.add_argument("--demo", action="store_true", help="also queue a small study")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do what is still missing."""
        self.stdout.write("Preparing the database and the static files ...")
        call_command("migrate", verbosity=0, interactive=False)
        call_command("collectstatic", verbosity=0, interactive=False)
        if not Board.objects.exists() and Attempt.objects.exclude(outcome=None).exclude(workload_key="").exists():
            call_command("rebuild_boards")  # runs of before there were stored boards
        if prepare(with_demo=options["demo"]):
            self.stdout.write(f"Made the first account: {ADMIN_NAME}; its password is in {password_file()}")
