"""`manage.py rebuild_boards`: the leaderboard's tables made anew from the runs."""

from typing import Any

from django.core.management.base import BaseCommand

from jobs.services.boards import rebuild_boards


class Command(BaseCommand):
    """Safe to run again, and while runs end: one that ends meanwhile may be counted twice until the next time."""

    help = "Make the leaderboard's tables anew from the runs that have ended."

    def handle(self, *args: Any, **options: Any) -> None:
        """Rebuild and tell of how many runs."""
        num_runs = 0
        for num_runs in rebuild_boards():  # noqa: B007 the last one counts
            pass
        self.stdout.write(f"Put {num_runs} runs on their boards.")
