"""`manage.py drop_points --older-than-days N`: of old runs only the coarser levels of their curves are kept."""

import sys
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand

from jobs.api.errors import InvalidRequest, errors_of_findings
from jobs.management.commands.submit import find_user
from jobs.services.compaction import drop_full_points

_BAD_INPUT = 2


class Command(BaseCommand):
    """Exit code 2: nothing was dropped, stderr says why. What is dropped is gone; the audit trail names who did it."""

    help = "Drop the single points of runs that ended long ago; their lowest and highest points stay, 1 in 8."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """How old, and who says so."""
        parser.add_argument("--older-than-days", type=int, required=True, help="days since the end of a run, 1 or more")
        parser.add_argument("--user", default="", help="who wants it; the first administrator if left out")

    def handle(self, *args: Any, **options: Any) -> None:
        """Drop and tell of how many runs."""
        days = options["older_than_days"]
        if days < 1:
            self.stderr.write("--older-than-days must be 1 or more.")
            sys.exit(_BAD_INPUT)
        try:
            user = find_user(options["user"])
        except InvalidRequest as error:
            self.stderr.write(" ".join(item.message for item in errors_of_findings(error.findings).errors))
            sys.exit(_BAD_INPUT)
        num_runs = drop_full_points(timedelta(days=days), by=user)
        self.stdout.write(f"Dropped the single points of {num_runs} runs.")
