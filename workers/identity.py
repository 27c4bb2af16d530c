"""Who this host is, and the tag by which the processes of an attempt are known."""

import os
import socket
import uuid

from django.conf import settings

# In the environment of a supervisor from its start, and so of every process below it. What the kernel shows of an
# environment is how it was at the start, and a supervisor may not know then which attempt will be its own.
TREE_VARIABLE = "PITWALL_TREE"


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


def make_tree_tag() -> str:
    """A value of `TREE_VARIABLE` that no other supervisor has, of this or another installation on the machine."""
    return uuid.uuid4().hex


def own_tree_tag() -> str:
    """The tag that this process was started with; empty where it was started by hand."""
    return os.environ.get(TREE_VARIABLE, "")
