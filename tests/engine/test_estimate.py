"""What a run would need is told before it runs: held against formulas, against a run's own figures and the kernel's."""

import json
import subprocess
import sys

import pytest
from engine_runs import DIGITS, ROOT, run_command, train, write_spec

from jobs.contract.events import Warned
from jobs.contract.spec import TrainSpec
from workers.engine.catalog import read_catalog
from workers.engine.estimate import estimate, estimate_here
from workers.engine.facts import read_host_facts
from workers.engine.memory import read_rss

GPT = {"model": "gpt-tiny", "dataset": "stdlib-text", "micro_batch_size": 8}
DDP = {"parallelism": "ddp", "num_devices": 2}


def estimated(**fields):
    return estimate_here(TrainSpec(**DIGITS | fields))


@pytest.mark.parametrize(
    ("fields", "states_per_weight"),
    [
        ({"optimizer": "sgd"}, 0),
        ({"optimizer": "sgd", "momentum": 0.9}, 1),
        ({"optimizer": "adam"}, 2),
        ({"optimizer": "adamw", "optimizer_impl": "fused"}, 2),
        ({"optimizer": "adagrad"}, 1),
    ],
    ids=str,
)
def test_an_optimizers_state_is_as_many_times_the_weights_as_its_algorithm_keeps(fields, states_per_weight):
    told = estimated(**fields)
    assert told.gradients_bytes == told.weights_bytes == 4 * told.num_parameters  # an MLP has no buffers
    assert told.optimizer_state_bytes == pytest.approx(states_per_weight * told.weights_bytes, rel=1e-5)


def test_parameters_and_flops_are_those_that_a_run_reports():
    told, ran = estimated(**GPT, grad_accum_steps=2), train(**GPT, grad_accum_steps=2, num_steps=1).summary
    assert (told.num_parameters, told.flops_per_step) == (ran.num_parameters, ran.flops_per_step)


def test_a_process_grows_as_was_told(tmp_path):
    fields = GPT | {"micro_batch_size": 128, "num_steps": 3, "phase_steps": 0}
    ran = run_command(write_spec(tmp_path, **fields)).summary
    grown_bytes = ran.peak_rss_bytes - ran.rss_before_build_bytes
    assert estimated(**fields).peak_bytes == pytest.approx(grown_bytes, rel=0.2)


@pytest.mark.parametrize(
    "fields",
    [{"precision": "bf16-mixed"}, {"activation_checkpointing": True}, {"micro_batch_size": 4}],
    ids=str,
)
def test_what_keeps_less_for_the_backward_pass_is_told_to_need_less(fields):
    plain, lean = estimated(**GPT), estimated(**GPT | fields)
    assert lean.activations_bytes < 0.75 * plain.activations_bytes
    assert lean.peak_bytes < plain.peak_bytes


def test_inference_has_neither_gradients_nor_optimizer():
    told = estimated(**GPT, task="inference")
    assert (told.gradients_bytes, told.optimizer_state_bytes) == (0, 0)
    assert told.peak_bytes < estimated(**GPT).peak_bytes


def test_shards_are_shares_and_copies_are_not():
    plain, copied = estimated(**GPT), estimated(**GPT | DDP)
    shared = estimated(**GPT | DDP | {"parallelism": "fsdp2"})
    assert copied.weights_bytes == plain.weights_bytes
    assert shared.weights_bytes == plain.weights_bytes // 2
    assert shared.optimizer_state_bytes == pytest.approx(plain.optimizer_state_bytes / 2, rel=0.01)
    assert shared.peak_bytes < copied.peak_bytes


def test_ddps_buckets_are_told_unless_they_are_the_gradients():
    buckets, views = estimated(**GPT | DDP), estimated(**GPT | DDP | {"ddp_gradient_as_bucket_view": True})
    # A process's own overhead is measured, and differs by a page from one measuring to the next.
    without_overhead = [told.peak_bytes - told.overhead_bytes for told in (buckets, views)]
    assert without_overhead[0] - without_overhead[1] == views.gradients_bytes


def test_a_model_too_large_for_this_machine_is_estimated_without_its_memory():
    before = read_rss()
    told = estimated(model="gpt2-medium", dataset="synthetic-tokens", sequence_length=1024, micro_batch_size=64)
    assert told.peak_bytes > 40 * 2**30
    assert told.fits is False
    assert read_rss() - before < 2**29  # the family's imports


def estimate_command(path):
    command = [sys.executable, "-m", "workers.engine", "estimate", str(path)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


def test_the_command_prints_json(tmp_path):
    ended = estimate_command(write_spec(tmp_path))
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["num_parameters"] > 0


@pytest.mark.parametrize(
    ("fields", "exit_code", "words"),
    [({"micro_batch_size": 0}, 2, "micro_batch_size"), ({"cuda_graph": True}, 3, "cuda_graph")],
    ids=str,
)
def test_the_command_says_what_is_wrong_in_one_sentence(tmp_path, fields, exit_code, words):
    ended = estimate_command(write_spec(tmp_path, **fields))
    assert (ended.returncode, ended.stdout) == (exit_code, "")
    assert words in ended.stderr
    assert "Traceback" not in ended.stderr


def needless(host_memory_bytes, **fields):
    """The warnings about checkpointing on a host of that memory."""
    facts = read_host_facts(with_gpus=False)
    cpu = facts.devices[0].model_copy(update={"memory_bytes": host_memory_bytes})
    facts = facts.model_copy(update={"devices": [cpu]})
    return [
        finding.sentence for finding in estimate(TrainSpec(**DIGITS | GPT | fields), facts, read_catalog()).findings
    ]


def test_checkpointing_is_warned_about_where_keeping_activations_would_fit_with_room_to_spare():
    keeping = min(estimated(**GPT).peak_bytes for _ in range(2))  # the first one may count imports too
    assert needless(2 * keeping) == []  # nobody asked for it
    [sentence] = needless(2 * keeping, activation_checkpointing=True)
    assert sentence.startswith("Without it a step needs about ")
    assert needless(round(keeping / 0.95), activation_checkpointing=True) == []
    ranks = DDP | {"activation_checkpointing": True}
    assert needless(2 * keeping, **ranks) == []  # two ranks share a host's memory


def test_a_run_that_recomputes_for_nothing_says_so_once():
    ran = train(**GPT, activation_checkpointing=True, num_steps=2, phase_steps=0)
    warned = [event.finding for event in ran.events if isinstance(event, Warned)]
    [finding] = [finding for finding in warned if finding.field == "activation_checkpointing"]
    assert "it fits, and computes nothing twice." in finding.sentence
    plain = train(**GPT, num_steps=2, phase_steps=0)
    assert not [event for event in plain.events if isinstance(event, Warned)]


def test_a_device_that_is_too_small_to_keep_them_is_not_warned_about(monkeypatch):
    monkeypatch.setattr("workers.engine.apart.memory_of", lambda device: 2**20)
    ran = train(**GPT, activation_checkpointing=True, num_steps=2, phase_steps=0)
    assert not [event for event in ran.events if isinstance(event, Warned)]
