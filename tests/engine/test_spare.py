"""An engine that was warm before its run was known: the same run as a cold one's, or it becomes a cold one."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from jobs.contract.errors import Diverged
from jobs.contract.events import parse_event
from jobs.contract.spec import Parallelism, TrainSpec
from tests.engine.engine_runs import ROOT, Run, run_command, write_spec
from workers.engine.death import PARENT_PID_VARIABLE
from workers.engine.environment import can_start_warm
from workers.engine.spare import WARM_NAME, Assignment

TEXT: dict[str, Any] = {"model": "gpt-tiny", "dataset": "stdlib-text", "micro_batch_size": 4, "num_steps": 6}
DROPPING = {"num_steps": 30, "dropout": 0.2, "seed": 7, "deterministic": True, "optimizer": "adam"}
# Figures of the summary that are no times and no memory, which differ from run to run.
SAME = ["num_steps", "num_samples", "final_train_loss", "final_eval_loss", "eval_accuracy", "num_parameters"]
SAME += ["observed_dtype", "attention_kernel", "fp32_arithmetic", "flops_per_step", "device_name"]


def start_spare(**environment: str) -> subprocess.Popen[bytes]:
    variables = os.environ | {PARENT_PID_VARIABLE: str(os.getpid())} | environment
    return subprocess.Popen(
        [sys.executable, "-m", "workers.engine", "spare"],
        cwd=ROOT,
        env=variables,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def wait_until_warm(spare: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while psutil.Process(spare.pid).name() != WARM_NAME:
        assert spare.poll() is None, spare.communicate()[1].decode()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def give(spare: subprocess.Popen[bytes], folder: Path, *options: str, **fields: Any) -> Run:
    """Let the spare run the default digits job with `fields` changed, to its end."""
    folder.mkdir()
    arguments = ["run", str(write_spec(folder, **fields)), "--events", str(folder / "events.jsonl"), *options]
    assignment = Assignment(arguments=arguments, environment=dict(os.environ), log=folder / "log.txt")
    spare.communicate(assignment.to_line(), timeout=120)
    events = [parse_event(line) for line in (folder / "events.jsonl").read_bytes().splitlines()]
    return Run(events, events[-1].summary, spare.returncode, (folder / "log.txt").read_text())


@pytest.mark.parametrize("fields", [DROPPING, TEXT], ids=["digits with dropout", "text"])
def test_a_warm_run_is_the_cold_run_to_the_bit(tmp_path: Path, fields: dict[str, Any]) -> None:
    spare = start_spare()
    cold, warm = run_command(write_spec(tmp_path, **fields)), give(spare, tmp_path / "warm", **fields)
    assert (cold.exit_code, warm.exit_code) == (0, 0), cold.stderr + warm.stderr
    assert warm.losses == cold.losses
    assert warm.started.pid == spare.pid
    assert [getattr(warm.summary, name) for name in SAME] == [getattr(cold.summary, name) for name in SAME]
    assert warm.started.model_dump(exclude={"pid"}) == cold.started.model_dump(exclude={"pid"})
    assert warm.summary.model_fields_set == cold.summary.model_fields_set
    assert (warm.summary.started_warm, cold.summary.started_warm) == (True, False)
    assert warm.summary.import_s < cold.summary.import_s
    assert warm.summary.peak_rss_bytes < 1.25 * cold.summary.peak_rss_bytes, "the run before is no part of it"
    assert warm.stderr.count("succeeded") == 1


def test_a_run_fails_in_a_spare_as_it_does_in_a_cold_engine(tmp_path: Path) -> None:
    ran = give(
        start_spare(), tmp_path / "warm", model="gpt-tiny", dataset="stdlib-text", optimizer="sgd", learning_rate=100
    )
    assert ran.exit_code == Diverged.exit_code
    assert ran.finished.error.step
    assert str(ran.finished.error.step) in ran.stderr


def test_what_needs_variables_before_torch_or_ranks_starts_cold() -> None:
    assert can_start_warm(TrainSpec(deterministic=True, num_threads=2))
    assert not can_start_warm(TrainSpec(expandable_segments=True))
    assert not can_start_warm(TrainSpec(parallelism=Parallelism.DDP, num_devices=2))


def test_a_spare_becomes_a_cold_engine_for_a_run_that_has_to_start_cold(tmp_path: Path) -> None:
    ran = give(start_spare(), tmp_path / "ranks", num_steps=4, parallelism="ddp", num_devices=2)
    assert ran.exit_code == 0, ran.stderr
    assert ran.summary.started_warm is False


def test_a_spare_whose_packages_have_changed_meanwhile_becomes_a_cold_engine(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    spare = start_spare(PYTHONPATH=f"{ROOT}:{packages}")
    wait_until_warm(spare)
    (packages / "new_package.py").touch()
    ran = give(spare, tmp_path / "run")
    assert (ran.exit_code, ran.summary.started_warm) == (0, False)
    assert ran.started.pid == spare.pid


def test_a_spare_has_touched_no_gpu_and_leaves_torch_as_it_found_it() -> None:
    code = """if True:
        import torch
        from workers.engine import spare
        before = torch.get_num_threads(), torch.get_default_dtype(), torch.are_deterministic_algorithms_enabled()
        spare.warm_up()
        after = torch.get_num_threads(), torch.get_default_dtype(), torch.are_deterministic_algorithms_enabled()
        assert not torch.cuda.is_initialized()
        assert not spare.has_touched_gpus()
        assert after == before, (before, after)
        assert not torch.compiler.is_compiling() and torch.is_grad_enabled()
    """
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, timeout=120, text=True)
    assert ran.returncode == 0, ran.stderr


def test_a_spare_that_nobody_needs_ends_by_itself() -> None:
    spare = start_spare()
    wait_until_warm(spare)
    spare.communicate(timeout=30)
    assert spare.returncode == 0


def test_a_spare_that_waits_ends_at_a_signal() -> None:
    spare = start_spare()
    wait_until_warm(spare)
    spare.terminate()
    spare.communicate(timeout=30)
    assert spare.returncode == -signal.SIGTERM
