"""`manage.py import_run FILE`: a run that was made elsewhere comes in, stamped as imported."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from jobs.api.choices import DEFAULT_QUEUE, choose_queue, choose_team
from jobs.api.errors import InvalidRequest, errors_of_findings
from jobs.api.render import render_json
from jobs.api.serializers import JobOut
from jobs.contract.results import BrokenResult
from jobs.management.commands.submit import find_user
from jobs.selectors.jobs import visible_jobs
from jobs.services.import_run import import_run

_BAD_INPUT = 2


class Command(BaseCommand):
    """Exit code 2: nothing came in, stderr says why. The same file comes in once; again it prints the same job."""

    help = "Bring in the events of an engine that ran elsewhere (`python -m workers.engine run SPEC > FILE`)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The file, and whose run it is."""
        parser.add_argument("file", type=Path, help="the engine's events, a JSON object per line")
        parser.add_argument("--name", default="", help="a name for people")
        parser.add_argument("--user", default="", help="whose run it is; the first administrator if left out")
        parser.add_argument("--team", default="", help="one of the user's teams; the first one if left out")
        parser.add_argument("--queue", default=DEFAULT_QUEUE, help="the queue that it is listed under")

    def handle(self, *args: Any, **options: Any) -> None:
        """Import and print the job."""
        try:
            user = find_user(options["user"])
            team, queue = choose_team(user, options["team"]), choose_queue(options["queue"])
            job, _is_new = import_run(owner=user, team=team, queue=queue, path=options["file"], name=options["name"])
        except InvalidRequest as error:
            for item in errors_of_findings(error.findings).errors:
                self.stderr.write(f"{item.field}: {item.message}")
            sys.exit(_BAD_INPUT)
        except BrokenResult as error:
            self.stderr.write(str(error))
            sys.exit(_BAD_INPUT)
        self.stdout.write(render_json(JobOut.of(visible_jobs(user).get(pk=job.pk)).model_dump(), indent=2))
