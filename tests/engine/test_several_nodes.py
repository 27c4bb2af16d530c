"""One run on two nodes: two engines as two hosts would start them, which meet at one rendezvous."""

import signal
import socket
import subprocess
import sys

import psutil
import pytest
from engine_runs import ROOT, Run, run_command, write_spec

from jobs.contract.events import Points, parse_event
from jobs.contract.metrics import Summary
from jobs.contract.states import Outcome

DDP = {"parallelism": "ddp", "micro_batch_size": 8, "num_threads": 1}
TWO_NODES = DDP | {"num_nodes": 2}


def start_nodes(spec):
    """The engines of two nodes on this machine, the first one first."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        place = ["--rendezvous", f"127.0.0.1:{probe.getsockname()[1]}", "--rendezvous-id", spec.parent.name]
    command = [sys.executable, "-m", "workers.engine", "run", str(spec), *place, "--node-rank"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return [subprocess.Popen([*command, str(rank)], cwd=ROOT, **pipes) for rank in (0, 1)]


def ended(process):
    out, err = process.communicate(timeout=120)
    events = [parse_event(line) for line in out.splitlines()]
    return Run(events, events[-1].summary if events else Summary(), process.returncode, err.decode())


def test_two_nodes_train_as_two_ranks_of_one_host_to_the_bit(tmp_path):
    one_host = run_command(write_spec(tmp_path, **DDP, num_devices=2))
    first, second = map(ended, start_nodes(write_spec(tmp_path, **TWO_NODES)))
    assert (first.exit_code, second.exit_code) == (0, 0), first.stderr + second.stderr
    assert first.losses == one_host.losses
    assert first.summary.final_eval_loss == one_host.summary.final_eval_loss
    assert first.summary.num_samples == one_host.summary.num_samples
    assert first.summary.flops_per_step == one_host.summary.flops_per_step
    assert first.started.hardware.num_nodes == 2
    assert (second.losses, second.finished.outcome) == ([], Outcome.SUCCEEDED), "only node 0 reports"


def test_the_end_of_one_node_is_the_end_of_the_other(tmp_path):
    first, second = start_nodes(write_spec(tmp_path, **TWO_NODES, num_steps=10**8))
    while not isinstance(parse_event(first.stdout.readline()), Points):
        assert first.poll() is None
    trees = [process for engine in (first, second) for process in psutil.Process(engine.pid).children(recursive=True)]
    (rank,) = [process for process in psutil.Process(second.pid).children(recursive=True) if _is_rank(process)]
    rank.send_signal(signal.SIGKILL)
    told_by_first, told_by_second = ended(first), ended(second)
    assert told_by_second.finished.error.rank == 1
    assert "SIGKILL" in told_by_second.finished.error.message
    assert (told_by_first.exit_code, told_by_first.finished.outcome) == (7, Outcome.FAILED)
    _gone, left = psutil.wait_procs(trees, timeout=10)
    assert [process for process in left if process.status() != psutil.STATUS_ZOMBIE] == []


def _is_rank(process):
    line = " ".join(process.cmdline())
    return "workers.engine rank" in line and "torch.distributed.run" not in line


@pytest.mark.parametrize(
    ("fields", "options", "sentence"),
    [
        (TWO_NODES, [], "num_nodes: The job asks for 2 nodes."),
        (DDP, ["--rendezvous", "127.0.0.1:1"], "num_nodes: --rendezvous is for a job of several nodes"),
        (TWO_NODES, ["--rendezvous", "127.0.0.1:1", "--node-rank", "2"], "there is no node 2; they count from 0."),
    ],
)
def test_a_command_line_that_tells_of_other_nodes_is_refused(tmp_path, fields, options, sentence):
    ran = run_command(write_spec(tmp_path, **fields), *options)
    assert ran.exit_code == 3
    assert sentence in ran.stderr
