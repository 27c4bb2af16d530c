"""The benchmarks' own specs and figures: runnable where they are meant to run, and counted as they say."""

import subprocess
import sys

import pytest
import torch

from benchmarks import gpu, memory_estimate
from benchmarks.clock import compare_clocks
from benchmarks.gpu_plan import GPT2_OPTIONS, QUESTIONS, Question
from benchmarks.intervals import Stopping
from benchmarks.pairs import compare
from benchmarks.processes import ROOT, EngineRun
from benchmarks.turns import Course
from benchmarks.work import WORKLOADS
from jobs.contract.catalog import BUILT_IN
from jobs.contract.facts import DeviceFacts, HostFacts
from jobs.contract.findings import Severity
from jobs.contract.rules import check
from jobs.contract.spec import TrainSpec

CPU = DeviceFacts(kind="cpu", name="A CPU", memory_bytes=2**37, has_native_bf16=True)
H200 = DeviceFacts(
    kind="cuda", name="NVIDIA H200", memory_bytes=141 * 2**30, compute_capability=(9, 0), has_native_bf16=True
)
GPU_SPECS = [
    pytest.param(spec, id=f"{name}: {configuration}")
    for name, question in QUESTIONS.items()
    for configuration, spec in question.configurations.items()
]
CPU_SPECS = WORKLOADS | memory_estimate.SPECS
TINY = {"model": "mlp", "dataset": "digits", "device": "cpu", "num_threads": 1, "num_steps": 12, "phase_steps": 0}


def host(*devices):
    versions = {"torch_version": "2.13.0", "python_version": "3.11", "cuda_version": "13.0"}
    return HostFacts(hostname="h", devices=list(devices), num_cpu_cores=16, has_compiler=True, **versions)


@pytest.mark.parametrize("spec", GPU_SPECS)
def test_no_rule_says_anything_against_a_gpu_benchmark_on_an_h200(spec):
    findings = check(TrainSpec(**spec), host(CPU, H200), BUILT_IN)
    assert [finding.sentence for finding in findings if finding.code != "warn_dataset"] == []  # made-up data are meant


@pytest.mark.parametrize("name", CPU_SPECS)
def test_no_rule_refuses_a_benchmark_on_a_cpu(name):
    findings = check(TrainSpec(**{"num_steps": 50} | CPU_SPECS[name]), host(CPU), BUILT_IN)
    assert [finding.sentence for finding in findings if finding.severity is Severity.REFUSE] == []


def test_an_ablation_switches_each_option_on_alone_and_off_alone():
    configurations = QUESTIONS["ablation-gpt2"].configurations
    plain, best = (TrainSpec(**configurations[name]) for name in ("plain fp32", "all"))
    for name, fields in GPT2_OPTIONS.items():
        alone, without = (TrainSpec(**configurations[f"{which} {name}"]) for which in ("only", "all without"))
        assert differing(alone, plain) == set(fields)
        assert differing(without, best) == set(fields)
    assert differing(plain, best) == {field for fields in GPT2_OPTIONS.values() for field in fields}


def differing(one, other):
    return {name for name in TrainSpec.model_fields if getattr(one, name) != getattr(other, name)}


def test_a_gpu_question_is_answered_row_by_row_and_a_refusal_keeps_its_sentence():
    question = Question(
        "mlp", {"eager": TINY, "fused": TINY | {"optimizer_impl": "fused"}, "graph": TINY | {"cuda_graph": True}}
    )
    results = gpu.measure(question, 2)
    assert [len(results[name]["runs"]) for name in ("eager", "fused", "graph")] == [2, 2, 0]
    assert "CUDA graphs need a GPU" in results["graph"]["failed"]
    *_, eager, fused, graph = gpu.table(question, results)
    assert [row.count("|") for row in (eager, fused, graph)] == [10, 10, 10]
    assert " to " in fused
    assert "CUDA graphs need a GPU" in graph


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA GPU")
def test_without_a_gpu_its_benchmark_says_so_in_one_sentence():
    ended = subprocess.run([sys.executable, "-m", "benchmarks.gpu"], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == gpu.NO_GPU_EXIT_CODE
    assert ended.stderr == "PyTorch sees no CUDA GPU on this machine, so there is nothing to measure here.\n"


def test_the_gpu_benchmark_needs_nothing_of_the_web_application():
    code = "import sys, benchmarks.gpu; print({'django', 'celery', 'redis', 'torch'} & {name for name in sys.modules})"
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout == "set()\n"


def test_the_engine_and_the_hand_written_loop_have_the_same_losses():
    found = compare("mlp/digits", ["plain"], Stopping(at_least=1, at_most=1), Course(num_rounds=4))
    assert found["loss_difference"] == {"plain": 0}
    assert min(found["raw_num_steps"]["plain"] + found["raw_num_steps"]["engine"]) > 0
    times_ms = found["raw_step_times_ms"]
    assert found["ratios"]["plain"]["ratio"] == pytest.approx(times_ms["plain"][0] / times_ms["engine"][0])


def test_clocks_are_compared_over_the_same_steps():
    windows = [(1, 0.2), (11, 0.5), (31, 0.54), (41, 0.58), (46, 0.64)]  # last step, arrival in s
    events = [{"type": "points", "steps": [step], "series": {"train_loss": [1.0]}} for step, _arrived_s in windows]
    ended = {"type": "finished", "summary": {"steady_step_time_ms": 2.01, "steady_s": 0.1401}}
    clocks = compare_clocks(EngineRun([*events, ended], [*(arrived_s for _step, arrived_s in windows), 0.7]))
    assert clocks["outside_ms"] == pytest.approx(2.0)  # 20 of the 35 steady steps took 2 ms
    assert clocks["outside_steady_s"] == pytest.approx(0.14)
    assert (clocks["engine_ms"], clocks["engine_steady_s"]) == (2.01, 0.1401)


@pytest.mark.parametrize(
    ("measured_mib", "error", "words"), [(255, 0.01, "not claimed"), (300, -0.15, "yes"), (300, 0.16, "no")]
)
def test_an_estimate_is_judged_only_where_it_claims_something(measured_mib, error, words):
    assert memory_estimate.judge({"measured_bytes": measured_mib * 2**20, "error": error}) == words
