"""Command line: `run`, `estimate`, `describe` and `compare`.

`spare` waits for a run with everything imported; `rank` is what torchrun starts for each process of one.

Each command imports its room only after this process is tied to its parent: what a dead parent left behind must not
spend seconds on imports first.
"""

import argparse
import json
import resource
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from jobs.contract.errors import PitwallError
from workers.engine import death

_LEAST_MEMORY_BYTES = 2**26  # enough to say what the rest does not suffice for
STARTED_S = time.perf_counter()  # imports are counted from here


def main() -> int:
    """Run one command; returns the process's exit code."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing is to be told yet: Ctrl-C just ends the process
    arguments = _parse_arguments()
    if arguments.command == "rank":
        death.die_with_launcher()
        return _rank(arguments)
    death.die_with_supervisor()
    commands = {"run": _run, "estimate": _estimate, "describe": _describe, "compare": _compare, "spare": _spare}
    return commands[arguments.command](arguments)


def _parse_arguments(command_line: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m workers.engine", description="Pitwall's training engine")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="train as a spec says and report events as JSON lines")
    run.add_argument("spec", type=Path, help="a JSON file")
    run.add_argument("--events", type=Path, help="append events to this file instead of standard output")
    run.add_argument("--artifacts", type=Path, metavar="DIR", help="write checkpoints and profiles into this folder")
    run.add_argument("--resume", type=Path, metavar="CHECKPOINT", help="go on from this file")
    run.add_argument("--memory-limit-bytes", type=_memory_limit, help="limit on the address space of each process")
    run.add_argument(
        "--rendezvous",
        type=_endpoint,
        metavar="HOST:PORT",
        help="of several nodes: where node 0 is, and a free port there",
    )
    run.add_argument(
        "--rendezvous-id", default="pitwall", metavar="ID", help="a name for the run, alike on all its nodes"
    )
    run.add_argument("--node-rank", type=int, default=0, metavar="N", help="which node this is, from 0, which reports")
    estimate = commands.add_parser("estimate", help="print parameters, FLOPs and peak memory as JSON, without running")
    estimate.add_argument("spec", type=Path, help="a JSON file")
    compare = commands.add_parser("compare", help="print two runs side by side")
    compare.add_argument("one", type=Path, metavar="A", help="a file of `run --events`")
    compare.add_argument("other", type=Path, metavar="B")
    describe = commands.add_parser("describe", help="print models, data sets, options, devices and rules as JSON")
    describe.add_argument("--ceilings", action="store_true", help="measure each device's matmul and copy rates too")
    commands.add_parser("spare", help="wait for a run on standard input (a supervisor starts it)")
    rank = commands.add_parser("rank", help="one process of a distributed run (torchrun starts it)")
    rank.add_argument("folder", type=Path)
    return parser.parse_args(command_line)


def _memory_limit(text: str) -> int:
    limit = int(text)
    if limit < _LEAST_MEMORY_BYTES:
        raise argparse.ArgumentTypeError(f"must be at least {_LEAST_MEMORY_BYTES}: Python alone takes half of that")
    return limit


def _endpoint(text: str) -> str:
    host, colon, port = text.rpartition(":")
    if not (host and colon and port.isdigit() and 0 < int(port) < 2**16):
        raise argparse.ArgumentTypeError("must be HOST:PORT")
    return text


def _run(arguments: argparse.Namespace, started_s: float = STARTED_S, *, is_warm: bool = False) -> int:
    if arguments.memory_limit_bytes is not None:
        resource.setrlimit(resource.RLIMIT_AS, (arguments.memory_limit_bytes, arguments.memory_limit_bytes))
    from workers.engine.attempt import run_attempt
    from workers.engine.files import RunFiles
    from workers.engine.node import Node

    files = RunFiles(artifacts=_absolute(arguments.artifacts), resume=_absolute(arguments.resume))
    node = Node(rank=arguments.node_rank, rendezvous=arguments.rendezvous, run_id=arguments.rendezvous_id)
    return run_attempt(arguments.spec, arguments.events, started_s, files, node, is_warm=is_warm)


def _spare(_arguments: argparse.Namespace) -> int:
    from workers.engine import spare

    spare.warm_up()
    code = spare.Code.imported()
    assignment = spare.wait_for_assignment()
    if assignment is None:
        return 0
    started_s = time.perf_counter()
    spare.take_on(assignment)
    arguments = _parse_arguments(assignment.arguments)
    if spare.has_touched_gpus() or not code.is_current or _must_start_cold(arguments.spec):
        spare.start_cold(assignment.arguments)
    spare.forget_peaks()
    return _run(arguments, started_s, is_warm=True)


def _must_start_cold(spec_path: Path) -> bool:
    from workers.engine.attempt import read_spec
    from workers.engine.environment import can_start_warm

    try:
        return not can_start_warm(read_spec(spec_path))
    except PitwallError:
        return False  # the run itself says what is wrong


def _absolute(path: Path | None) -> Path | None:
    return path.absolute() if path else None


def _estimate(arguments: argparse.Namespace) -> int:
    from workers.engine.attempt import read_spec

    try:
        spec = read_spec(arguments.spec)
        from workers.engine.estimate import estimate_here  # torch comes with it, and a broken spec is told before

        sys.stdout.write(estimate_here(spec).model_dump_json(indent=2) + "\n")
    except PitwallError as error:
        return _tell(error)
    return 0


def _compare(arguments: argparse.Namespace) -> int:
    from workers.engine.compare import compare_files

    try:
        sys.stdout.write(compare_files(arguments.one, arguments.other))
    except PitwallError as error:
        return _tell(error)
    return 0


def _tell(error: PitwallError) -> int:
    sys.stderr.write(f"{error}\n")
    return error.exit_code


def _describe(arguments: argparse.Namespace) -> int:
    from workers.engine.describe import describe

    json.dump(describe(with_ceilings=arguments.ceilings), sys.stdout, indent=2)
    sys.stdout.write("\n")
    return 0


def _rank(arguments: argparse.Namespace) -> int:
    from workers.engine.rank import run_rank

    run_rank(arguments.folder, STARTED_S)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
