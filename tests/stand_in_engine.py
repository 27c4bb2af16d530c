"""An engine that computes nothing: it speaks the real engine's protocol and misbehaves on demand, within a second.

`PITWALL_ENGINE_MODULE=tests.stand_in_engine` puts it behind the real supervisor. What a run does is chosen by the
spec's `seed`; a step takes `STEP_S`. It reports `PITWALL_STAND_IN_GPUS` GPUs that nobody computes on. Of a run on
several nodes only the first one does anything; like ranks, each notices when another one is gone.
"""

import argparse
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from enum import IntEnum
from pathlib import Path

from jobs.contract.catalog import BUILT_IN
from jobs.contract.events import Artifact, ErrorInfo, Event, Finished, Phase, Points, Started
from jobs.contract.facts import DeviceFacts, HostFacts
from jobs.contract.metrics import Summary
from jobs.contract.rules import resolve_device_kind
from jobs.contract.spec import DeviceKind, TrainSpec
from jobs.contract.states import Outcome
from workers.engine.death import die_with_supervisor
from workers.engine.spare import take_on, wait_for_assignment
from workers.engine.stream import EventStream

STEP_S = 0.01
WINDOW_STEPS = 5  # steps in one event
GIB = 2**30


class Part(IntEnum):
    """What a run does, as its seed."""

    TRAIN = 0
    ABORT = 1  # as a fatal CUDA error does
    KILL_SUPERVISOR = 2
    IGNORE_SIGTERM = 3  # with two ranks that do so too
    FLOOD_LOG = 4  # as fast as it can, while it trains
    DIVERGE = 5
    MANY_POINTS = 6  # all steps at once
    DISK_FULL = 7
    LEAVE_A_PROCESS = 8  # one that has left the session, while it trains
    START_SLOWLY = 9


def loss_at(step: int) -> float:
    """What every run that gets there reports at this step."""
    return 10.0 / step


def read_facts() -> HostFacts:
    num_gpus = int(os.environ.get("PITWALL_STAND_IN_GPUS", "2"))
    cpu = DeviceFacts(kind="cpu", name="Stand-in CPU", memory_bytes=16 * GIB, has_native_bf16=True)
    gpus = [
        DeviceFacts(
            kind="cuda",
            index=index,
            name="Stand-in GPU",
            uuid=f"GPU-stand-in-{index}",
            memory_bytes=80 * GIB,
            compute_capability=(9, 0),
            has_native_bf16=True,
        )
        for index in range(num_gpus)
    ]
    return HostFacts(
        hostname="stand-in",
        devices=[cpu, *gpus],
        num_cpu_cores=2,
        has_compiler=True,
        torch_version="2.13.0",
        python_version="3.11.0",
        cuda_version="12.8",
    )


class PeerGone(Exception):
    """A node has ended before the run has."""


class Peers:
    """This node's connections to others: of the first one to each, of each to the first one."""

    def __init__(self, endpoint: str | None, rank: int, num_nodes: int) -> None:
        self.connections: list[socket.socket] = []
        if endpoint is None:
            return
        host, _, port = endpoint.rpartition(":")
        if rank == 0:
            with socket.create_server((host, int(port))) as server:
                self.connections = [server.accept()[0] for _node in range(1, num_nodes)]
        else:
            self.connections = [_connect(host, int(port))]

    def require(self) -> None:
        """Raise where one is gone."""
        if self.connections and select.select(self.connections, [], [], 0)[0]:
            raise PeerGone

    def dismiss(self) -> None:
        """The run is done."""
        for connection in self.connections:
            connection.sendall(b"done")

    def wait_for_the_end(self) -> None:
        if self.connections[0].recv(4) != b"done":
            raise PeerGone


def _connect(host: str, port: int) -> socket.socket:
    while True:
        try:
            return socket.create_connection((host, port))
        except ConnectionRefusedError:
            time.sleep(0.05)


class Run:
    """One run; `first` is the step that it begins with."""

    def __init__(self, spec: TrainSpec, stream: EventStream, artifacts: Path, first: int, peers: Peers) -> None:
        self.spec, self.stream, self.artifacts, self.first = spec, stream, artifacts, first
        self.peers = peers
        self.num_steps = spec.num_steps or 1
        self.kind = resolve_device_kind(spec, read_facts())

    def emit(self, event: Event) -> None:
        self.stream.emit(event)

    def start(self) -> None:
        self.emit(Phase(name="importing"))
        resolved = {"device": DeviceKind(self.kind), "num_steps": self.num_steps}
        self.emit(
            Started(
                pid=os.getpid(),
                spec=self.spec.model_copy(update=resolved),
                device_name=f"Stand-in {self.kind}",
                dataset_revision="r1",
                num_train_samples=1000,
                versions={"engine": "stand-in", "torch": "2.13.0"},
            )
        )
        self.emit(Phase(name="training"))

    def train(self, pause_s: float = STEP_S, window: int = WINDOW_STEPS) -> None:
        for begin in range(self.first, self.num_steps + 1, window):
            steps = list(range(begin, min(begin + window, self.num_steps + 1)))
            time.sleep(pause_s * len(steps))
            self.peers.require()
            self.emit_points(steps)
            self.save_if_due(steps)

    def emit_points(self, steps: list[int]) -> None:
        losses = [loss_at(step) for step in steps]
        wall_s = [(step - self.first + 1) * STEP_S for step in steps]
        self.emit(Points(steps=steps, wall_s=wall_s, series={"train_loss": losses}))

    def save_if_due(self, steps: list[int]) -> None:
        every = self.spec.checkpoint_every_steps
        for step in steps if every else []:
            if step % (every or 1) == 0:
                name = f"step-{step:09d}.pt"
                path = self.artifacts / "checkpoints" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                part = path.with_suffix(".part")
                part.write_text(str(step))
                part.rename(path)
                self.emit(Artifact(name=name, kind="checkpoint", file=f"checkpoints/{name}", size_bytes=1))

    def finish(self, outcome: Outcome, error: ErrorInfo | None = None) -> None:
        summary = Summary(num_steps=self.num_steps, steady_step_time_ms=1000 * STEP_S)
        self.emit(Finished(outcome=outcome, summary=summary, error=error))


def play(run: Run, part: Part) -> None:
    """Do what the seed asks for."""
    if part is Part.START_SLOWLY:
        time.sleep(60)
    run.start()
    match part:
        case Part.ABORT:
            os.abort()
        case Part.KILL_SUPERVISOR:
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)
        case Part.IGNORE_SIGTERM:
            for _rank in range(2):
                subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(15, 1); time.sleep(600)"])
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            run.train()
        case Part.FLOOD_LOG:
            flood = "import sys\nwhile True: sys.stdout.write('x' * 8191 + chr(10))"
            with subprocess.Popen([sys.executable, "-c", flood]) as child:
                run.train()
                child.kill()
        case Part.DIVERGE:
            run.emit(Points(steps=[run.first], wall_s=[0.0], series={"train_loss": [float("nan")]}))
            message = f"The loss was not finite at step {run.first}."
            return run.finish(Outcome.DIVERGED, ErrorInfo(type="Diverged", message=message, step=run.first))
        case Part.MANY_POINTS:
            run.train(pause_s=0, window=10_000)
        case Part.DISK_FULL:
            # A limit on the size of files is the one way to a full disk that needs no privilege.
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
            run.train()
        case Part.LEAVE_A_PROCESS:
            subprocess.Popen(["sleep", "600"], start_new_session=True)
            run.train()
        case _:
            run.train()
    run.finish(Outcome.SUCCEEDED)
    run.peers.dismiss()
    return None


def main() -> None:
    die_with_supervisor()
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["run", "describe", "spare"])
    parser.add_argument("spec", type=Path, nargs="?")
    parser.add_argument("--events", type=Path)
    parser.add_argument("--artifacts", type=Path)
    parser.add_argument("--resume", type=Path)
    parser.add_argument("--rendezvous")
    parser.add_argument("--rendezvous-id")
    parser.add_argument("--node-rank", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.command == "spare":
        assignment = wait_for_assignment()
        if assignment is None:
            return
        take_on(assignment)
        arguments = parser.parse_args(assignment.arguments)
    if arguments.command == "describe":
        catalog = BUILT_IN.model_dump(mode="json")
        sys.stdout.write(json.dumps({"facts": read_facts().model_dump(mode="json"), "catalog": catalog}))
        return
    spec = TrainSpec.model_validate_json(arguments.spec.read_text())
    first = int(arguments.resume.read_text()) + 1 if arguments.resume else 1
    seed = spec.seed if spec.seed in set(Part) else 0
    stream, rank = EventStream.on_file(arguments.events), arguments.node_rank
    run = Run(spec, stream, arguments.artifacts, first, Peers(arguments.rendezvous, rank, spec.num_nodes))
    try:
        if rank == 0:
            play(run, Part(seed))
        else:
            run.peers.wait_for_the_end()
            stream.emit(Finished(outcome=Outcome.SUCCEEDED, summary=Summary()))
    except (PeerGone, ConnectionError):
        message = f"Rank {rank} failed: the connection was closed."
        run.finish(Outcome.FAILED, ErrorInfo(type="RankFailed", message=message, rank=rank))


if __name__ == "__main__":
    main()
