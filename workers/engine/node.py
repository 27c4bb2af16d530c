"""This host's place in a run over several of them, and how they reach each other."""

import fcntl
import os
import socket
import struct
from contextlib import suppress

from pydantic import BaseModel, ConfigDict

from jobs.contract.errors import RefusedSpec
from jobs.contract.messages import gettext_noop as _
from jobs.contract.rules.table import refuse
from jobs.contract.spec import TrainSpec

_SIOCGIFADDR = 0x8915  # netdevice(7): the IPv4 address of an interface
# What gloo and NCCL connect through; without these gloo looks up the host's name, which may not resolve.
_INTERFACE_VARIABLES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
_ALONE = _("The job asks for %(asked)s nodes. Start the engine on each, with --rendezvous HOST:PORT and --node-rank.")
_NOT_ASKED = _("--rendezvous is for a job of several nodes; this one asks for one.")
_BEYOND = _("The job asks for %(asked)s nodes, so there is no node %(rank)s; they count from 0.")


class Node(BaseModel):
    """One of a run's hosts. Node 0 holds the rendezvous, reports what the run does and keeps its time."""

    model_config = ConfigDict(frozen=True)

    rank: int = 0
    rendezvous: str | None = None  # HOST:PORT on node 0; None for a run on one host
    run_id: str = "pitwall"  # the same on all nodes: no other run's processes are taken for this one's

    def require_for(self, spec: TrainSpec) -> None:
        """Raises `RefusedSpec` where the spec asks for other nodes than the command line tells of."""
        if spec.num_nodes > 1 and spec.uses_ranks and self.rendezvous is None:
            raise RefusedSpec([refuse("num_nodes", _ALONE, asked=spec.num_nodes)])
        if spec.num_nodes == 1 and self.rendezvous is not None:
            raise RefusedSpec([refuse("num_nodes", _NOT_ASKED)])
        if self.rank >= spec.num_nodes:
            raise RefusedSpec([refuse("num_nodes", _BEYOND, asked=spec.num_nodes, rank=self.rank)])

    @property
    def leads(self) -> bool:
        """Whether this is node 0."""
        return self.rank == 0

    @property
    def torchrun_options(self) -> list[str]:
        """Where torchrun meets its like. The static rendezvous gives nodes the ranks that they were told."""
        if self.rendezvous is None:  # port 0 lets the rendezvous find a free one
            return ["--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1"]
        place = ["--rdzv-endpoint", self.rendezvous, "--node-rank", str(self.rank), "--rdzv-id", self.run_id]
        return ["--rdzv-backend", "static", *place]

    @property
    def environment(self) -> dict[str, str]:
        """The variables that tell gloo and NCCL by which interface ranks reach each other; what is set stays."""
        interface = "lo" if self.rendezvous is None else _interface_towards(self.rendezvous)
        if interface is None:
            return {}
        names = _INTERFACE_VARIABLES if self.rendezvous else _INTERFACE_VARIABLES[:1]
        return {name: os.environ.get(name, interface) for name in names}


def _interface_towards(endpoint: str) -> str | None:
    """The interface that leads from here to HOST:PORT; None where that is not to be found out."""
    host, _colon, port = endpoint.rpartition(":")
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, int(port)))  # sends nothing: the kernel only picks the way
        address = probe.getsockname()[0]
        return next((name for _index, name in socket.if_nameindex() if _address_of(name, probe) == address), None)
    return None


def _address_of(interface: str, any_socket: socket.socket) -> str | None:
    request = struct.pack("256s", interface.encode())
    with suppress(OSError):  # it has no IPv4 address
        return socket.inet_ntoa(fcntl.ioctl(any_socket, _SIOCGIFADDR, request)[20:24])
    return None
