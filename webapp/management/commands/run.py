"""`manage.py run`: everything on this machine, for one person or a small team; Ctrl-C ends it."""

import logging
import os
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from webapp.broker import recorded_url_path
from webapp.embedded_redis import NoRedisServer, SocketFolder
from webapp.first_run import ADMIN_NAME, password_file
from webapp.launcher import CannotStart, Launcher, Service, exclusive_use, require_free_port, require_linux


class Command(BaseCommand):
    """Prepares the state folder, starts broker, worker and web, and waits."""

    help = "Run web, broker and worker on this machine. PORT chooses the port, PITWALL_VAR the state folder."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The port may be given here or as PORT."""
        parser.add_argument("--port", type=int, default=int(os.environ.get("PORT") or 8000))

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until Ctrl-C; every reason not to start is one sentence."""
        try:
            require_linux()
            require_free_port(options["port"])
            with exclusive_use(settings.VAR):
                self._run(options["port"])
        except (CannotStart, NoRedisServer) as error:
            raise CommandError(str(error)) from error

    def _run(self, port: int) -> None:
        folder = SocketFolder()
        recorded = recorded_url_path(settings.VAR)
        launcher = Launcher(_services(port, folder))
        recorded.write_text(folder.url)
        try:
            # The worker finds the first jobs when it registers, so a wake-up that fails now is nothing to report.
            logging.getLogger("jobs.services.wake").setLevel(logging.ERROR)
            call_command("setup", demo=True)
            launcher.start()
            if launcher.wait_for(port, timeout_s=60):
                self._say_where(port)
            elif not launcher.stopping:
                raise CannotStart(f"The web server did not come up; its log is {_log('web')}.")
            launcher.watch()
            self.stdout.write("\nStopping.")
        finally:
            launcher.stop()
            recorded.unlink(missing_ok=True)
            folder.remove()

    def _say_where(self, port: int) -> None:
        self.stdout.write(f"\n  Pitwall is at http://127.0.0.1:{port}")
        if password_file().exists():
            self.stdout.write(f"  Sign in as {ADMIN_NAME} with the password {password_file().read_text().strip()}")
        self.stdout.write(f"  Logs are in {_log('web').parent}. Ctrl-C ends everything.\n")
        self.stdout.flush()


def _services(port: int, folder: SocketFolder) -> list[Service]:
    python = sys.executable
    web = [python, "-m", "uvicorn", "webapp.asgi:application", "--host", "127.0.0.1", "--port", str(port)]
    # An open event stream must not keep the server from stopping.
    web += ["--timeout-graceful-shutdown", "2", "--no-access-log"]
    return [
        Service("broker", folder.command(), _log("broker")),
        Service("worker", [python, "manage.py", "worker"], _log("worker")),
        Service("web", web, _log("web")),
    ]


def _log(name: str) -> Path:
    folder = settings.VAR / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{name}.log"
