"""What a user gets wrong, and what a host lacks, as it looks on a terminal: one sentence and an exit code of its own.

The traceback is in the result, and in the log where standard error is one.
"""

import os
import pty
import resource
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from engine_runs import DIGITS, ROOT, run_command, train, write_spec

from jobs.contract.events import Finished, parse_event
from workers.engine.files import RunFiles

RANKS = {"parallelism": "ddp", "num_devices": 2}


def limit_file_size():
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


@dataclass
class Fault:
    """How to bring a fault about, and what is to be read about it."""

    exit_code: int
    words: str
    spec: dict | str = field(default_factory=dict)
    options: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    limited: bool = False  # files may not grow


def another_models_checkpoint(folder: Path) -> str:
    train(files=RunFiles(artifacts=folder / "other"), num_steps=2, checkpoint_every_steps=2)
    return str(folder / "other" / "checkpoints" / "step-000000002.pt")


def no_compiler(folder: Path) -> dict[str, str]:
    (folder / "empty").mkdir()
    return {"PATH": str(folder / "empty"), "CXX": ""}


def broken_checkpoint(folder: Path) -> str:
    torch.save({"weights": torch.ones(2)}, folder / "broken.pt")
    return str(folder / "broken.pt")


TRACE = "full disk while writing a trace"
FAULTS = {
    "broken spec file": lambda _: Fault(2, "This is not valid JSON", spec="{"),
    "unknown field": lambda _: Fault(2, "num_stepz: There is no such option.", spec={"num_stepz": 5}),
    "wrong value": lambda _: Fault(2, "precision: Must be one of", spec={"precision": "fp7"}),
    "artifacts folder that is a file": lambda folder: Fault(
        14,
        "cannot be written: File exists. Name another one.",
        spec={"checkpoint_every_steps": 5},
        options=["--artifacts", str(write_spec(folder))],
    ),
    "memory limit that PyTorch does not fit into": lambda _: Fault(
        6, "Not even PyTorch itself fits; raise the limit.", options=["--memory-limit-bytes", "200000000"]
    ),
    "refused": lambda _: Fault(3, "Give either steps or epochs, not both.", spec={"num_epochs": 3}),
    "missing data folder": lambda folder: Fault(
        4,
        "There is no data set folder:photos",
        spec={"dataset": "folder:photos", "model": "convnet"},
        environment={"PITWALL_DATA": str(folder)},
    ),
    "missing root of data folders": lambda _: Fault(
        4, "folder:photos", spec={"dataset": "folder:photos"}, environment={"PITWALL_DATA": "/nowhere"}
    ),
    "missing checkpoint": lambda _: Fault(10, "No such file or directory.", options=["--resume", "/nowhere.pt"]),
    "unreadable checkpoint": lambda folder: Fault(
        10, "it is not a whole checkpoint", options=["--resume", broken_checkpoint(folder)]
    ),
    "checkpoint of another model": lambda folder: Fault(
        11,
        "model is mlp there and convnet here",
        spec={"model": "convnet", "num_steps": 4},
        options=["--resume", another_models_checkpoint(folder)],
    ),
    "checkpoint of another model, on two ranks": lambda folder: Fault(
        11,
        "model is mlp there and convnet here",
        spec={"model": "convnet", "num_steps": 4, **RANKS},
        options=["--resume", another_models_checkpoint(folder)],
    ),
    TRACE: lambda folder: Fault(
        9,
        "could not be written: there is no room left.",
        spec={"profile_steps": 20},
        options=["--artifacts", str(folder / "artifacts")],
        limited=True,
    ),
    "no compiler": lambda folder: Fault(
        3,
        "torch.compile needs a C++ compiler, and this worker has none. Install g++ there.",
        spec={"compile_mode": "default"},
        environment=no_compiler(folder),
    ),
    "a compiler that does not work": lambda folder: Fault(
        12,
        "compiler on this worker is missing or broken",
        spec={"compile_mode": "default"},
        environment={"CXX": "/bin/false", "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache")},
    ),
}


def run_on_a_terminal(folder: Path, fault: Fault) -> tuple[int, str, Finished]:
    """Exit code, what stands on the terminal, and the last event, which goes into a file."""
    path, events = folder / "faulty.json", folder / "events.jsonl"
    path.write_text(fault.spec if isinstance(fault.spec, str) else write_spec(folder, **fault.spec).read_text())
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "workers.engine", "run", str(path), "--events", str(events), *fault.options]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=os.environ | fault.environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        preexec_fn=limit_file_size if fault.limited else None,
    )
    os.close(theirs)
    shown = b""
    while chunk := read_terminal(ours):
        shown += chunk
    os.close(ours)
    (*_others, last) = [parse_event(line) for line in events.read_text().splitlines()]
    return process.wait(60), shown.decode().replace("\r\n", "\n"), last


def read_terminal(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # nobody has its other end any more
        return b""


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_one_sentence_on_a_terminal_and_an_exit_code(tmp_path, name):
    fault = FAULTS[name](tmp_path)
    exit_code, shown, finished = run_on_a_terminal(tmp_path, fault)
    assert exit_code == fault.exit_code, shown
    assert "Traceback" not in shown
    assert shown.splitlines()[-1] == finished.error.message
    assert fault.words in finished.error.message
    assert "\n" not in finished.error.message
    assert "Traceback" in finished.error.traceback
    if name == TRACE:
        assert_results_are_left(tmp_path, finished)


def assert_results_are_left(folder: Path, finished: Finished) -> None:
    """A trace that does not fit takes nothing of its run along."""
    assert finished.summary.num_steps == DIGITS["num_steps"]
    assert finished.summary.final_eval_loss is not None
    assert finished.error.phase == "measuring"
    assert [path.name for path in (folder / "artifacts" / "profile").iterdir()] == ["operators.json"]


def test_the_log_keeps_the_traceback_of_what_a_terminal_is_spared(tmp_path):
    fault = FAULTS["checkpoint of another model"](tmp_path)
    ran = run_command(write_spec(tmp_path, **fault.spec), *fault.options)
    assert ran.exit_code == 11
    assert "Traceback (most recent call last)" in ran.stderr
    assert "in _require_same_work" in ran.stderr
    assert ran.stderr.splitlines()[-1] == ran.finished.error.message


def test_an_error_that_nobody_foresaw_shows_its_traceback_everywhere(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import workers.engine.seeds as seeds\n"
        "def fail(seed): raise RuntimeError('no such luck')\n"
        "seeds.seed_everything = fail\n"
    )
    fault = Fault(1, "", spec=DIGITS, environment={"PYTHONPATH": f"{tmp_path}:{ROOT}"})
    exit_code, shown, _finished = run_on_a_terminal(tmp_path, fault)
    assert exit_code == 1
    assert "in fail" in shown
    assert shown.splitlines()[-1] == "RuntimeError: no such luck"
