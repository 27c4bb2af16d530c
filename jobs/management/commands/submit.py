"""`manage.py submit`: queue a job from a spec file, from flags, or from both, and print it as JSON."""

import json
import sys
import time
from argparse import ArgumentParser, BooleanOptionalAction
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand

from jobs.api.choices import DEFAULT_QUEUE, choose_queue, choose_team
from jobs.api.errors import ErrorsOut, InvalidRequest, errors_of_findings, errors_of_models, refusal
from jobs.api.render import render_json
from jobs.api.serializers import JobOut
from jobs.contract.errors import InvalidSpec
from jobs.contract.messages import gettext_noop as _
from jobs.contract.spec import TrainSpec, parse_spec
from jobs.contract.states import Outcome
from jobs.models import Job, User
from jobs.selectors.jobs import visible_jobs
from jobs.services.errors import SpecRefused
from jobs.services.submit import submit_job

_POLL_S = 0.5
_BAD_INPUT = 2


class Command(BaseCommand):
    """Exit code 2: nothing was queued, stderr says why, field by field. With --wait 0 means that it succeeded."""

    help = "Queue a training job and print it as JSON, as GET /api/v1/jobs/{id} does."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The submission's own options, then one flag for each field of a spec."""
        parser.allow_abbrev = False
        parser.add_argument("spec", nargs="?", help="a JSON file, or - for standard input")
        parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="override one field")
        parser.add_argument("--queue", default=DEFAULT_QUEUE, help="the queue that it waits in")
        parser.add_argument("--name", default="", help="a name for people")
        parser.add_argument("--user", default="", help="whose job it is; the first administrator if left out")
        parser.add_argument("--team", default="", help="one of the user's teams; the first one if left out")
        parser.add_argument("--wait", action="store_true", help="wait until the job has ended")
        add_spec_flags(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Submit, wait where asked to, print."""
        try:
            user = find_user(options["user"])
            job = submit_job(
                owner=user,
                team=choose_team(user, options["team"]),
                queue=choose_queue(options["queue"]),
                spec=parse_spec(_read_spec(options["spec"]) | _overrides(options["set"]) | _flags(options)),
                name=options["name"],
            )
        except (InvalidRequest, InvalidSpec, SpecRefused) as error:
            self._refuse(errors_of_findings(error.findings))
        except ValidationError as error:
            self._refuse(errors_of_models(error))
        else:
            self._report(user, job, wait=options["wait"])

    def _report(self, user: User, job: Job, *, wait: bool) -> None:
        while wait and not job.has_ended:
            time.sleep(_POLL_S)
            job.refresh_from_db(fields=["state", "outcome"])
        job = visible_jobs(user).get(pk=job.pk)
        self.stdout.write(render_json(JobOut.of(job).model_dump(), indent=2))
        if wait and job.outcome != Outcome.SUCCEEDED:
            sys.exit(1)

    def _refuse(self, errors: ErrorsOut) -> None:
        for error in errors.errors:
            self.stderr.write(f"{error.field}: {error.message}")
        sys.exit(_BAD_INPUT)


def add_spec_flags(parser: ArgumentParser) -> None:
    """A flag for each field of `TrainSpec`: `--learning-rate 0.1`, and `--pin-memory` or `--no-pin-memory`."""
    flags = parser.add_argument_group("fields of the spec; they override the file's and --set's")
    for name, field in TrainSpec.model_fields.items():
        flag = f"--{name.replace('_', '-')}"
        text = (field.description or "").replace("%", "%%")
        if field.annotation is bool:
            flags.add_argument(flag, dest=_dest(name), action=BooleanOptionalAction, default=None, help=text)
        else:
            flags.add_argument(flag, dest=_dest(name), metavar="VALUE", help=text)


def _dest(name: str) -> str:
    """Apart from the command's own options, whatever a field may be called."""
    return f"spec.{name}"


def _flags(options: Mapping[str, Any]) -> dict[str, Any]:
    given = {name: options.get(_dest(name)) for name in TrainSpec.model_fields}
    return {name: _value(value) for name, value in given.items() if value is not None}


def _overrides(pairs: Iterable[str]) -> dict[str, Any]:
    values = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign:
            raise refusal("set", "no_value", _("“%(pair)s” is not of the form field=value."), pair=pair)
        values[name.strip()] = _value(value)
    return values


def _value(text: str | bool) -> Any:
    """JSON where it is JSON, else the text itself, so that `precision=fp32` needs no quotes."""
    if isinstance(text, bool):
        return text
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _read_spec(source: str | None) -> dict[str, Any]:
    if source is None:
        return {}
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise refusal("spec", "unreadable", _("“%(file)s” cannot be read: %(why)s."), file=source, why=error) from error
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise refusal("spec", "json_invalid", _("This is not valid JSON: %(error)s."), error=error) from error
    if not isinstance(values, dict):
        raise refusal("spec", "model_type", _("A spec is a JSON object of options and their values."))
    return values


def find_user(name: str) -> User:
    """The user of that name, the first administrator where none is named; raises `InvalidRequest`."""
    users = User.objects.filter(is_active=True).order_by("pk")
    user = users.filter(username=name).first() if name else users.filter(is_superuser=True).first()
    if user is None:
        message = _("There is no active user “%(name)s”.") if name else _("There is no administrator; name a user.")
        raise refusal("user", "unknown_user", message, name=name)
    return user
