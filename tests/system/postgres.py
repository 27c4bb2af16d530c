"""A PostgreSQL server of the tests' own, which they may end and start again."""

import getpass
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.system.pitwall import free_port, wait_until

USER = "pitwall"
NOT_THERE = "no PostgreSQL server on this machine (Debian: apt-get install postgresql)"


def find_programs() -> Path | None:
    """The folder of initdb and postgres, None where there is no server."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    if found:
        return found[-1].parent
    return Path(on_path).parent if on_path else None


def as_database_user() -> dict[str, str]:
    """PostgreSQL refuses to run as root; its package has made a user for it."""
    return {"user": "postgres", "group": "postgres"} if getpass.getuser() == "root" else {}


class PostgresServer:
    """One server with its data in a temporary folder."""

    def __init__(self, programs: Path) -> None:
        self.programs = programs
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="pitwall-postgres-"))
        self.process: subprocess.Popen[bytes] | None = None
        if as_database_user():
            shutil.chown(self.folder, **as_database_user())
        self._run("initdb", "-D", str(self.folder / "data"), "-U", USER, "-A", "trust", "--no-sync", as_owner=True)

    def _run(self, program: str, *arguments: str, as_owner: bool = False) -> None:
        options: dict[str, Any] = {"cwd": self.folder} | (as_database_user() if as_owner else {})
        subprocess.run([str(self.programs / program), *arguments], check=True, capture_output=True, **options)

    def start(self) -> None:
        """Serve, and wait until it answers."""
        command = [str(self.programs / "postgres"), "-D", str(self.folder / "data"), "-p", str(self.port)]
        command += ["-h", "127.0.0.1", "-k", str(self.folder), "-c", "fsync=off", "-c", "max_connections=200"]
        self.process = subprocess.Popen(
            command, stderr=(self.folder / "log").open("ab"), cwd=self.folder, **as_database_user()
        )
        ready = [str(self.programs / "pg_isready"), "-h", "127.0.0.1", "-p", str(self.port)]
        wait_until(lambda: subprocess.run(ready, capture_output=True).returncode == 0, 60, "PostgreSQL")

    def stop(self) -> None:
        """End every connection and the server."""
        if self.process:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(timeout=30)
            self.process = None

    def create_database(self, name: str) -> str:
        """A new, empty database; its address."""
        self._run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", USER, name)
        return f"postgres://{USER}@127.0.0.1:{self.port}/{name}"

    def remove(self) -> None:
        """End it and delete its data."""
        self.stop()
        shutil.rmtree(self.folder)
