import math
from itertools import pairwise

import pytest
import torch
from engine_runs import DIVERGING, train

from jobs.contract.errors import Diverged, RefusedSpec
from jobs.contract.events import Phase, Points, Started, Warned
from workers.engine.loop import propose_length, weighted_median

# What a digits job on a CPU has no figure for.
NOT_ON_A_CPU_MLP = {
    "attention_kernel",
    "capture_s",
    "checkpoint_s",
    "energy_j",
    "mfu",
    "num_compile_cache_hits",
    "num_compile_cache_misses",
    "num_graph_breaks",
    "num_graphs",
    "num_recompiles",
    "num_skipped_steps",
    "peak_allocated_bytes",
    "peak_device_used_bytes",
    "peak_reserved_bytes",
    "phase_communication_exposed_ms",
    "phase_host_to_device_ms",
    "tokens_per_s",
    "started_warm",  # told of a process, and this run has none of its own
}


@pytest.mark.parametrize(
    ("model", "dataset", "num_steps", "fall"),
    [("mlp", "digits", 200, 0.5), ("convnet", "digits", 60, 0.5), ("gpt-tiny", "stdlib-text", 25, 0.75)],
)
def test_each_model_learns(model, dataset, num_steps, fall):
    ran = train(model=model, dataset=dataset, num_steps=num_steps, learning_rate=3e-3)
    assert ran.summary.final_train_loss < fall * ran.losses[0]
    assert ran.summary.final_eval_loss < fall * ran.losses[0]


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adamw"])
def test_each_optimizer_lowers_the_loss(optimizer):
    ran = train(optimizer=optimizer, num_steps=100, learning_rate=0.05 if optimizer == "sgd" else 1e-3)
    assert ran.summary.final_train_loss < ran.losses[0]


def test_the_same_seed_repeats_every_loss_and_another_does_not(baseline):
    # Once in many runs on a busy machine the last bit of a threaded sum differed, so not exactly.
    assert train().losses == pytest.approx(baseline.losses, abs=1e-6)
    assert train(seed=1).losses != pytest.approx(baseline.losses, abs=1e-2)


def test_every_step_has_its_loss_once_in_order(baseline):
    assert list(baseline.points("train_loss")) == list(range(1, 21))


def test_wall_time_only_grows(baseline):
    walls = [wall for event in baseline.events if isinstance(event, Points) for wall in event.wall_s]
    curve = [event for event in baseline.events if isinstance(event, Points) and "train_loss" in event.series]
    assert all(a < b for a, b in pairwise(wall for event in curve for wall in event.wall_s))
    assert min(walls) > 0


def test_phases_come_in_order(baseline):
    names = [event.name for event in baseline.events if isinstance(event, Phase)]
    assert names == ["building", "first_step", "training", "evaluating", "measuring"]


def test_the_summary_of_a_cpu_run_is_complete_but_for_what_it_cannot_have(baseline):
    missing = {name for name, value in baseline.summary.model_dump().items() if value is None}
    assert missing - {"not_steady_because"} == NOT_ON_A_CPU_MLP
    assert ("not_steady_because" in missing) == baseline.summary.is_steady


def test_the_summarys_figures_agree_with_each_other(baseline):
    summary = baseline.summary
    assert (summary.num_steps, summary.num_samples) == (20, 320)
    assert summary.samples_per_s == pytest.approx(16e3 / summary.steady_step_time_ms)
    assert summary.final_train_loss == pytest.approx(sum(baseline.losses[-10:]) / 10)
    assert 0 <= summary.eval_accuracy <= 1
    assert summary.num_parameters == 64 * 128 + 128 + 128 * 10 + 10
    assert summary.peak_rss_bytes >= summary.rss_before_build_bytes / 2 > 0


def test_step_times_are_reported_per_window_of_the_steady_part(baseline):
    times = baseline.points("step_time_ms")
    assert min(times) > 5  # after the first step and four of warm-up
    assert max(times) == 20
    assert baseline.summary.steady_step_time_ms in times.values()


def test_one_step_alone_has_no_steady_step_time():
    summary = train(num_steps=1).summary
    assert summary.first_step_s > 0
    assert summary.steady_step_time_ms is None
    assert summary.samples_per_s is None


def test_two_steps_have_one():
    assert train(num_steps=2).summary.steady_step_time_ms > 0


def test_epochs_become_steps():
    ran = train(num_epochs=2, num_steps=None, micro_batch_size=100)
    assert ran.started.spec.num_steps == 28  # 14 whole batches of 100 in 1,437 samples
    assert ran.started.spec.num_epochs is None
    assert len(ran.losses) == 28


def test_what_was_left_open_is_resolved_when_the_run_starts():
    started = train(device="auto").started
    assert started.spec.device in ("cpu", "cuda")
    assert started.device_name
    assert started.num_train_samples == 1437
    assert all(started.versions[name] for name in ("engine", "python", "torch", "transformers"))
    assert [device.name for device in started.hardware.devices] == [started.device_name]


def test_warnings_follow_the_start(monkeypatch, baseline):
    monkeypatch.setattr("workers.engine.facts.read_cpuinfo", lambda: {"model name": "Old CPU", "flags": "fpu"})
    events = train(precision="bf16-mixed").events
    kinds = [type(event) for event in events]
    assert kinds.index(Warned) > kinds.index(Started)
    assert Warned not in [type(event) for event in baseline.events]


def test_a_loss_that_is_not_finite_ends_the_run_at_its_step():
    with pytest.raises(Diverged) as caught:
        train(**DIVERGING)
    assert 1 < caught.value.step < DIVERGING["num_steps"]


def test_cuda_is_never_replaced_by_the_cpu():
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(RefusedSpec, match="no CUDA GPU"):
        train(device="cuda")


def test_a_batch_larger_than_the_loaded_data_set_is_refused():
    with pytest.raises(RefusedSpec, match="larger than the training split of stdlib-text"):
        train(model="gpt-tiny", dataset="stdlib-text", micro_batch_size=999_999)


def test_the_next_window_aims_at_a_quarter_of_a_second():
    assert propose_length(10, 1.0) == 2
    assert propose_length(1, 10.0) == 1
    assert propose_length(100, 0.01) == 2500
    assert propose_length(100, 0.0) == 4096


def test_a_window_counts_by_its_steps_in_the_median():
    assert weighted_median([(100, 1.0), (1, 50.0)]) == 1.0
    assert weighted_median([(10, 1.0), (10, 3.0), (10, 2.0)]) == 2.0
    assert math.isclose(weighted_median([(5, 4.0)]), 4.0)
