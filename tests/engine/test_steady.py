import time

import numpy as np
import pytest
import torch
from engine_runs import train

from jobs.contract.spec import TrainSpec
from workers.engine.loop import Loop
from workers.engine.order import BatchOrder
from workers.engine.parallel import Exchange, Rank
from workers.engine.report import Report
from workers.engine.steady import Ground, why_not_steady
from workers.engine.timing import MAX_KEPT_STEPS, HostClock, StepTimes

CALM = Ground(num_compiled_frames=3, num_allocator_retries=0, reserved_bytes=100)


def test_two_equal_windows_on_unchanged_ground_are_steady():
    assert why_not_steady([9.0, 1.0, 1.019], CALM, CALM, CALM) is None


@pytest.mark.parametrize(
    ("medians_ms", "after", "words"),
    [
        ([1.0], CALM, "Fewer than two windows"),
        ([1.0, 1.02], CALM, "differ by 2.0 %"),
        ([1.02, 1.0], CALM, "differ by 2.0 %"),
        ([1.0, 1.0], Ground(4, 0, 100), "compiled again"),
        ([1.0, 1.0], Ground(3, 1, 100), "try again"),
        ([1.0, 1.0], Ground(3, 0, 101), "Reserved GPU memory"),
    ],
)
def test_what_was_not_steady_is_said(medians_ms, after, words):
    assert words in why_not_steady(medians_ms, CALM, CALM, after)


def test_reserved_memory_may_grow_until_the_last_two_windows():
    grown = Ground(3, 0, 200)
    assert why_not_steady([1.0, 1.0, 1.0], CALM, grown, grown) is None
    assert "Reserved GPU memory" in why_not_steady([1.0, 1.0, 1.0], CALM, CALM, grown)


def test_a_recompilation_shows_on_the_ground():
    compiled = torch.compile(lambda x: x + 1, backend="eager", dynamic=False)
    compiled(torch.zeros(2))
    before = Ground.now([torch.device("cpu")])
    compiled(torch.zeros(2))
    assert Ground.now([torch.device("cpu")]) == before
    compiled(torch.zeros(3))
    assert Ground.now([torch.device("cpu")]) != before


def test_a_run_too_short_for_two_windows_is_marked_not_steady():
    summary = train(num_steps=10).summary
    assert summary.is_steady is False
    assert "Fewer than two windows" in summary.not_steady_because


def test_percentiles_are_of_single_steps():
    times = StepTimes()
    times.add(range(1, 101))
    assert times.percentiles() == pytest.approx(tuple(np.percentile(np.arange(1, 101), [50, 90, 99])))
    times.add([5.0] * MAX_KEPT_STEPS)
    assert times.percentiles() == (5.0, 5.0, 5.0)
    assert StepTimes().percentiles() is None


def test_the_hosts_clock_has_a_time_per_step_and_starts_anew_each_window():
    clock = HostClock()
    for num_steps in (3, 1):
        mark = clock.begin(num_steps)
        for _ in range(num_steps):
            mark()
        assert len(clock.read_ms()) == num_steps
        assert min(clock.read_ms()) >= 0


def test_the_percentiles_of_a_run_are_ordered_and_lie_within_its_steady_part(baseline):
    summary = baseline.summary
    assert 0 < summary.step_time_p50_ms <= summary.step_time_p90_ms <= summary.step_time_p99_ms
    assert summary.step_time_p99_ms <= 1e3 * summary.steady_s
    parts_s = summary.warmup_s + summary.steady_s
    assert 0 < parts_s <= summary.train_s + 1e-9  # between them the steady part is prepared


def test_tokens_are_samples_times_context():
    summary = train(model="gpt-tiny", dataset="stdlib-text", micro_batch_size=2, num_steps=3).summary
    assert summary.tokens_per_s == pytest.approx(128 * summary.samples_per_s)
    assert train(num_steps=2).summary.tokens_per_s is None


class Clocked:
    """A step that takes a second, but for the one that takes five more to record a graph."""

    def __init__(self, monkeypatch, report, recorded_at=None):
        self.now_s, self.num_taken, self.recorded_at, self.report = 0.0, 0, recorded_at, report
        monkeypatch.setattr(time, "perf_counter", lambda: self.now_s)

    def __call__(self):
        self.num_taken += 1
        self.now_s += 1
        if self.num_taken == self.recorded_at:
            self.now_s += 5
            self.report.summary.capture_s = 5.0
        return torch.zeros(())


def loop_of(step, report, num_steps, keeper=None):
    device, spec = torch.device("cpu"), TrainSpec(num_steps=num_steps)
    order = BatchOrder(1000, 0, 1, 1, 1, 0)
    return Loop(step, spec, Exchange(Rank(), device), report, [device], order, keeper=keeper)


def test_recording_a_graph_is_neither_warm_up_nor_training(monkeypatch):
    report = Report(None)
    loop = loop_of(Clocked(monkeypatch, report, recorded_at=4), report, num_steps=20)
    loop.run_first_step()
    loop.run_warmup(at_least=3)
    loop.run_steady()
    summary = report.summary
    assert (summary.first_step_s, summary.capture_s, summary.warmup_s, summary.steady_s) == (1, 5, 4, 15)
    assert summary.train_s == summary.warmup_s + summary.steady_s
    assert summary.steady_step_time_ms == 1000


class EveryStep:
    """Wants a checkpoint after each step, and takes no time for it."""

    def steps_until_next(self, num_done):
        return 1

    def save_if_due(self, num_done, final_losses):
        return 0.0


def test_the_warm_up_is_as_long_where_checkpoints_cut_it_into_pieces(monkeypatch):
    report = Report(None)
    loop = loop_of(Clocked(monkeypatch, report), report, num_steps=20, keeper=EveryStep())
    loop.run_first_step()
    loop.run_warmup(at_least=11)
    assert loop.num_left == 8
    assert report.summary.warmup_s == 11


def test_reserved_memory_that_has_settled_leaves_a_run_steady(monkeypatch):
    report = Report(None)
    step = Clocked(monkeypatch, report)
    monkeypatch.setattr(Ground, "now", lambda _devices: Ground(0, 0, min(step.num_taken, 10)))
    loop = loop_of(step, report, num_steps=40)
    loop.run_first_step()
    loop.run_warmup()
    loop.run_steady()
    assert (report.summary.is_steady, report.summary.not_steady_because) == (True, None)
