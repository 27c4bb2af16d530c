"""Who this host is, and the mark by which the processes of its attempts are known."""

import socket
import uuid

from django.conf import settings

ATTEMPT_VARIABLE = "PITWALL_ATTEMPT"


def host_name() -> str:
    """The name of this worker: the machine's, unless it was given one."""
    return settings.ENVIRONMENT.host_name or socket.gethostname()


def host_id() -> uuid.UUID:
    """This host's id, made once per host name and kept under var: several hosts may share the folder."""
    path = settings.VAR / "hosts" / host_name()
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.write_text(str(uuid.uuid4()))
    return uuid.UUID(path.read_text().strip())


def attempt_mark(attempt_id: int) -> str:
    """What `ATTEMPT_VARIABLE` is in every process of an attempt; another installation on this machine has others."""
    return f"{host_id()}/{attempt_id}"
