"""Distributed runs on two gloo ranks, as real processes."""

import signal
import subprocess
import sys
import threading

import psutil
import pytest
from engine_runs import DIGITS, DIVERGING, ROOT, run_command, write_spec

from jobs.contract.events import parse_event
from jobs.contract.spec import TrainSpec
from jobs.contract.states import Outcome
from workers.engine.launch import rank_environment
from workers.engine.node import Node

DDP = {"parallelism": "ddp", "num_devices": 2, "micro_batch_size": 8}


def test_two_ranks_train_as_one_process(tmp_path, baseline):
    ran = run_command(write_spec(tmp_path, **DDP))
    assert ran.exit_code == 0, ran.stderr
    assert ran.losses == pytest.approx(baseline.losses, abs=1e-5)
    assert ran.summary.final_eval_loss == pytest.approx(baseline.summary.final_eval_loss, abs=1e-5)
    assert ran.summary.eval_accuracy == baseline.summary.eval_accuracy
    assert ran.summary.num_samples == baseline.summary.num_samples
    assert ran.summary.peak_rss_bytes > 1.5 * baseline.summary.rss_before_build_bytes / 2


def test_the_rank_that_failed_first_is_named_with_its_error(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import os\n"
        "if os.environ.get('RANK') == '1':\n"
        "    import workers.engine.optimizers as optimizers\n"
        "    def fail(*arguments): raise ValueError('no such luck')\n"
        "    optimizers.build_optimizer = fail\n"
    )
    ran = run_command(write_spec(tmp_path, **DDP), environment={"PYTHONPATH": f"{tmp_path}:{ROOT}"})
    error = ran.finished.error
    assert (ran.exit_code, ran.finished.outcome, error.type, error.rank) == (7, Outcome.FAILED, "RankFailed", 1)
    assert error.message == "Rank 1 failed: ValueError: no such luck."
    assert error.phase == "building"
    assert "in fail" in error.traceback


def test_ranks_that_diverge_say_so_as_one_process_would(tmp_path):
    ran = run_command(write_spec(tmp_path, **DIVERGING | {"parallelism": "ddp", "num_devices": 2}))
    assert (ran.exit_code, ran.finished.outcome) == (5, Outcome.DIVERGED)
    assert list(ran.points("train_loss"))[-1] == ran.finished.error.step


def test_a_refused_combination_never_starts_a_rank(tmp_path):
    ran = run_command(write_spec(tmp_path, **DDP, num_epochs=1))
    assert ran.exit_code == 3
    assert len(ran.events) == 1


def test_cores_are_shared_out_among_ranks_unless_the_user_says(monkeypatch):
    monkeypatch.setattr("workers.engine.launch.num_usable_cores", lambda: 8)
    spec = TrainSpec(**DIGITS | DDP)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert rank_environment(spec, Node())["OMP_NUM_THREADS"] == "3"  # of 8 cores one stays free
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert rank_environment(spec, Node())["OMP_NUM_THREADS"] == "1"


class LiveRun:
    """A run that would go on for hours, followed until it trains."""

    def __init__(self, command, **popen):
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **popen)
        self.lines = iter(self.process.stdout)
        self.stderr = b""
        self._reader = threading.Thread(target=self._read_stderr, daemon=True)
        self._reader.start()
        while b"train_loss" not in (line := next(self.lines)):
            self.last = line
        for _ in range(3):
            next(self.lines)
        self.tree = psutil.Process(self.process.pid).children(recursive=True)

    def _read_stderr(self):
        self.stderr = self.process.stderr.read()

    def command_lines(self):
        return [" ".join(process.cmdline()) for process in self.tree]

    def assert_all_gone(self):
        _gone, alive = psutil.wait_procs(self.tree, timeout=5)
        assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []

    def last_event(self):
        *_others, last = self.lines
        return parse_event(last)


ENDLESS = {"num_steps": 10**8}
LOADER = {"data_loading": "dataloader", "num_workers": 1}


def engine(path):
    return [sys.executable, "-m", "workers.engine", "run", str(path)]


# A stand-in for the supervisor: announces itself, starts the engine, waits.
SUPERVISOR = (
    "import os, subprocess, sys; os.environ['PITWALL_PARENT_PID'] = str(os.getpid());"
    "subprocess.Popen(sys.argv[1:]).wait()"
)


@pytest.mark.parametrize("fields", [LOADER, LOADER | DDP], ids=["one process", "two ranks"])
def test_a_killed_supervisor_leaves_no_process_behind(tmp_path, fields):
    live = LiveRun([sys.executable, "-c", SUPERVISOR, *engine(write_spec(tmp_path, **ENDLESS, **fields))])
    assert len(live.tree) >= (2 if fields is LOADER else 6)  # engine, (launcher, two ranks,) a loader worker each
    live.process.kill()
    live.assert_all_gone()


def test_a_killed_engine_takes_launcher_and_ranks_along(tmp_path):
    live = LiveRun(engine(write_spec(tmp_path, **ENDLESS, **DDP)))
    live.process.kill()
    live.assert_all_gone()


@pytest.mark.parametrize("fields", [{}, DDP], ids=["one process", "two ranks"])
def test_sigterm_ends_the_tree_with_a_last_line(tmp_path, fields):
    live = LiveRun(engine(write_spec(tmp_path, **ENDLESS, **fields)))
    live.process.terminate()
    finished = live.last_event()
    assert finished.outcome is Outcome.CANCELLED
    assert live.process.wait(5) == 143
    live.assert_all_gone()


def test_a_rank_that_is_killed_is_named_with_its_signal(tmp_path):
    live = LiveRun(engine(write_spec(tmp_path, **ENDLESS, **DDP)))
    victim = next(process for process in live.tree if process.environ().get("RANK") == "1")
    victim.send_signal(signal.SIGKILL)
    finished = live.last_event()
    assert finished.error.rank == 1
    assert finished.error.message.startswith("Rank 1 failed: it was killed by SIGKILL")
    assert finished.error.step > 1
    assert live.process.wait(5) == 7
    live.assert_all_gone()
