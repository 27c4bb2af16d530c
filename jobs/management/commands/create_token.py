"""`manage.py create_token USER`: a personal API token, printed once."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from jobs.models import User
from jobs.services.tokens import create_token


class Command(BaseCommand):
    """Only the token is written to stdout, so that a script can take it from there."""

    help = "Make an API token for a user and print it. It is stored hashed and cannot be shown again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Whose token, and what for."""
        parser.add_argument("user", help="the user's name")
        parser.add_argument("--name", default="", help="what the token is for")

    def handle(self, *args: Any, **options: Any) -> None:
        """Make it and print it."""
        user = User.objects.filter(username=options["user"], is_active=True).first()
        if user is None:
            raise CommandError(f"There is no active user “{options['user']}”.", returncode=2)
        _token, secret = create_token(user, options["name"])
        self.stdout.write(secret)
