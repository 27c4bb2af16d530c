"""Peak memory: what is read held against the kernel's own account, and what a run says against what its model took."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from engine_runs import ROOT, Recording, train
from torch import nn

from jobs.contract.spec import TrainSpec
from workers.engine.failure import Terminated
from workers.engine.memory import read_rss
from workers.engine.parallel import Rank
from workers.engine.report import Report
from workers.engine.run import run

MIB = 2**20
CHILD = """
import sys, torch
from workers.engine.memory import read_peaks, reset_peaks
cpu = torch.device("cpu")
early = torch.ones(300 * 2**20 // 4); del early
before = read_peaks([cpu]).rss
reset_peaks([cpu])
start = read_peaks([cpu]).rss
block = torch.ones(200 * 2**20 // 4); del block
print(before, start, read_peaks([cpu]).rss, flush=True)
sys.stdin.read()
"""


def high_water_mark(pid):
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def test_the_peak_is_the_kernels_and_counts_from_the_reset():
    command = [sys.executable, "-c", CHILD]
    child = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    before, start, peak = map(int, child.stdout.readline().split())
    seen_from_outside = high_water_mark(child.pid)
    child.communicate()
    assert abs(peak - seen_from_outside) < 2 * MIB
    assert before - start > 290 * MIB  # what was freed before the reset is forgotten
    assert 195 * MIB < peak - start < 215 * MIB


class Hungry(nn.Sequential):
    """Takes memory for a moment in each training step, and much more of it in the first one."""

    def __init__(self):
        super().__init__(nn.Flatten(), nn.Linear(64, 10))
        self.num_steps = 0
        self.held_bytes = 0

    def forward(self, inputs):
        if self.training:
            self.num_steps += 1
            self.held_bytes = read_rss()
            torch.ones((400 if self.num_steps == 1 else 150) * MIB // 4)
        return super().forward(inputs)


@pytest.mark.parametrize(("num_steps", "taken_mib"), [(30, 150), (1, 400)], ids=["steady part", "first step only"])
def test_a_runs_peak_is_that_of_its_timed_steps(monkeypatch, num_steps, taken_mib):
    model = Hungry()
    monkeypatch.setattr("workers.engine.assembly.build_model", lambda *_about: model)
    ran = train(num_steps=num_steps, phase_steps=0)
    assert (taken_mib - 10) * MIB < ran.summary.peak_rss_bytes - model.held_bytes < (taken_mib + 40) * MIB


class Stopped(nn.Sequential):
    """Is told to stop once something was measured."""

    def __init__(self, report):
        super().__init__(nn.Embedding(256, 8), nn.Linear(8, 256))
        self.report = report

    def forward(self, inputs):
        if self.report.summary.samples_per_s:
            raise Terminated
        return super().forward(inputs)


def test_a_run_that_is_stopped_keeps_what_it_has_measured(monkeypatch):
    report = Report(Recording())
    monkeypatch.setattr("workers.engine.assembly.build_model", lambda *_about: Stopped(report))
    work = {"model": "gpt-tiny", "dataset": "stdlib-text", "micro_batch_size": 4}
    with pytest.raises(Terminated):
        run(TrainSpec(**work, device="cpu", num_steps=1_000_000), report, Rank(), 0.0)
    summary = report.summary
    assert summary.tokens_per_s == pytest.approx(128 * summary.samples_per_s)
    assert summary.peak_rss_bytes > 50 * MIB
    assert summary.spoiled_by is not None
