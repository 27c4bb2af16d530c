"""Every two values of two options together: each case runs to its end, needs a GPU, or is refused with its sentence.

None may crash. What ran must have done what it was asked for, as far as the result tells.
"""

import os
import socket
import time
from enum import StrEnum
from functools import cache
from itertools import combinations

import pytest
import torch
import torch.distributed as dist
from covering import cover_pairs
from engine_runs import Recording, Run
from one_of_two_ranks import load_small
from two_ranks import run_on_two_ranks

from jobs.contract.catalog import BUILT_IN
from jobs.contract.errors import Diverged, RefusedSpec
from jobs.contract.events import Warned
from jobs.contract.facts import DeviceFacts
from jobs.contract.options import metadata
from jobs.contract.rules import check, refusals
from jobs.contract.spec import TrainSpec
from jobs.contract.states import Outcome
from workers.engine import run as engine_run
from workers.engine.facts import read_host_facts
from workers.engine.parallel import Rank
from workers.engine.report import Report

WORK = [
    {"model": "mlp", "dataset": "digits"},
    {"model": "convnet", "dataset": "digits"},
    {"model": "gpt-tiny", "dataset": "stdlib-text"},
]
# Numbers have no end of values: these are the ones that do different things. Enumerations and switches give their own.
NUMBERS = {
    "num_devices": [1, 2],
    "num_nodes": [1],
    "initial_loss_scale": [None, 1024.0],
    "ddp_bucket_cap_mb": [None, 1],
    "num_threads": [None, 1],
    "micro_batch_size": [4],
    "grad_accum_steps": [1, 2],
    "num_steps": [4],
    "learning_rate": [1e-3],
    "warmup_steps": [0, 2],
    "weight_decay": [None, 0.1],
    "momentum": [0.0, 0.9],
    "grad_clip_norm": [None, 0.5],
    "dropout": [0.0],
    "num_workers": [0, 1],
    "prefetch_factor": [None, 2],
    "seed": [0],
    "phase_steps": [0, 2],
    "profile_steps": [0],
    "checkpoint_every_steps": [None],
}
# Sizes and limits are of the work, not of how a step is computed; a run's length is given once.
LEFT_OUT = {"model", "dataset", "num_epochs", "image_size", "sequence_length", "time_limit_s"}
GPU = DeviceFacts(
    kind="cuda", name="H100", memory_bytes=2**36, compute_capability=(9, 0), has_native_bf16=True, has_kernels=True
)
NUM_COMPILED_BY_DEFAULT = 2


@pytest.fixture(scope="module", autouse=True)
def data_sets_are_read_once_and_have_little_to_evaluate():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine_run, "load_dataset", load_small)
        yield


def values_of(name):
    if name in NUMBERS:
        return NUMBERS[name]
    kind = TrainSpec.model_fields[name].annotation
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return [item.value for item in kind]
    assert kind is bool, f"say in NUMBERS which values of {name} do different things, or leave it out"
    return [False, True]


@cache
def cases():
    return [case.pop("work") | case for case in cover_pairs(all_options())]


def all_options():
    return {"work": WORK} | {name: values_of(name) for name in TrainSpec.model_fields if name not in LEFT_OUT}


@cache
def host():
    return read_host_facts()


def accepted_here(case):
    """The case with each refused option as it comes, again and again until nothing is refused on this host."""
    case = dict(case)
    if not torch.cuda.is_available():
        case["device"] = "cpu"
    while refused := refusals(check(TrainSpec(**case), host(), BUILT_IN)):
        taken_back = {finding.field: TrainSpec.model_fields[finding.field].default for finding in refused}
        taken_back.pop("num_steps", None)  # four are enough for all but a CUDA graph, which is refused as well
        assert case | taken_back != case, [finding.sentence for finding in refused]
        case |= taken_back
    return case


def in_this_process(case):
    """Of a case on several ranks the first one alone, its group included."""
    case = accepted_here(case | {"num_devices": 1})
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        os.environ |= {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"}
        os.environ["MASTER_PORT"] = str(free.getsockname()[1])
    recording = Recording()
    report = Report(recording)
    try:
        engine_run.run(TrainSpec(**case), report, Rank(), time.perf_counter())
    except Diverged:  # sixteen bits may be too few for an optimizer's epsilon
        assert case["precision"] == "fp16-true"
        return None
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
    return Run(recording.events, report.summary)


def assert_it_did_what_it_says(case, ran):
    spec, summary = ran.started.spec, ran.summary
    trains = spec.task == "train"
    assert summary.num_steps == 4
    dtypes = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
    assert summary.observed_dtype == dtypes[spec.precision.partition("-")[0]]
    assert (summary.num_skipped_steps is not None) == (trains and spec.precision == "fp16-mixed")
    assert (summary.num_graphs or 0) >= (spec.compile_mode != "off")
    warned = {event.finding.field for event in ran.events if isinstance(event, Warned)}
    if spec.sdpa_backend != "auto":
        assert summary.attention_kernel == spec.sdpa_backend or "sdpa_backend" in warned
    if spec.channels_last and spec.model != "convnet":
        assert "channels_last" in warned
    for name in set(case) - {"device", "num_threads", "weight_decay"}:
        assert getattr(spec, name) == case[name], name


def end_of(case):
    ran = in_this_process(case)
    if ran is not None:
        assert_it_did_what_it_says(accepted_here(case | {"num_devices": 1}), ran)
    return ran


def is_compiled(case):
    return accepted_here(case)["compile_mode"] != "off"


def test_every_pair_of_values_meets():
    values = {"a": [1, 2, 3], "b": [False, True], "c": ["x", "y"], "d": [None, 1]}
    array = cover_pairs(values)
    for one, two in combinations(values, 2):
        assert {(case[one], case[two]) for case in array} == {(x, y) for x in values[one] for y in values[two]}
    assert len(array) < 12  # of 24
    assert array == cover_pairs(values)


def test_every_option_is_in_the_array_or_left_out_for_a_reason():
    assert set(TrainSpec.model_fields) == set(cases()[0]) | LEFT_OUT
    assert all(metadata(field) for field in TrainSpec.model_fields.values())


def test_each_case_is_allowed_somewhere_or_refused_with_sentences():
    on_a_gpu = host().model_copy(update={"devices": [*host().devices, GPU, GPU], "has_torchao": True})
    for case in cases():
        for facts in (host(), on_a_gpu, None):
            for finding in check(TrainSpec(**case), facts, BUILT_IN):
                assert finding.field in TrainSpec.model_fields
                assert finding.sentence.endswith(".")
                assert "%" not in finding.sentence


def test_what_is_refused_is_refused_by_the_engine_too():
    for case in cases()[:20]:
        refused = refusals(check(TrainSpec(**case), host(), BUILT_IN))
        if refused:
            with pytest.raises(RefusedSpec) as caught:
                engine_run.run(TrainSpec(**case), Report(Recording()), Rank(), time.perf_counter())
            assert {finding.sentence for finding in caught.value.findings} == {each.sentence for each in refused}


@pytest.mark.parametrize("part", range(4))
def test_every_case_without_compilation_runs_to_its_end_here_once_what_is_refused_is_taken_back(part):
    ends = [end_of(case | {"compile_mode": "off", "compile_scope": "model"}) for case in cases()[part::4]]
    assert sum(end is not None for end in ends) > len(ends) / 3


def test_some_compiled_cases_run_to_their_end():
    trained = [case for case in cases() if is_compiled(case) and case["model"] == "mlp" and case["task"] == "train"]
    assert all(list(map(end_of, trained[:NUM_COMPILED_BY_DEFAULT])))


@pytest.mark.slow
def test_every_compiled_case_runs_to_its_end():
    ends = []
    for case in filter(is_compiled, cases()):
        torch._dynamo.reset()
        ends.append(end_of(case))
    assert sum(end is not None for end in ends) > len(ends) / 3


def on_two_ranks():
    """Cases of an array of their own, for of those above few have two ranks left once what is refused is taken back."""
    options = {name: values for name, values in all_options().items() if not name.startswith("compile_")}
    options |= {"parallelism": ["ddp", "fsdp2"], "num_devices": [2], "device": ["cpu"]}
    accepted = [accepted_here(case.pop("work") | case) for case in cover_pairs(options)]
    return [case for case in accepted if TrainSpec(**case).num_ranks == 2]


def in_one_process(case):
    """The same work: the whole global batch on one rank."""
    of_ranks = [name for name in case if name.startswith("ddp_")]
    as_they_come = {name: TrainSpec.model_fields[name].default for name in of_ranks}
    alone = {"parallelism": "none", "micro_batch_size": 2 * case["micro_batch_size"]}
    return in_this_process(case | as_they_come | alone)


def is_exact(case):
    return case["precision"] == "fp32" and case["ddp_comm_hook"] == "none"


def test_every_eager_case_on_two_ranks_does_what_it_says_and_trains_as_one_process(tmp_path):
    taken = on_two_ranks()
    for parallelism in ("ddp", "fsdp2"):
        assert sum(case["parallelism"] == parallelism for case in taken) > 5
    num_compared = 0
    for case, ran in zip(taken, run_on_two_ranks(tmp_path, taken, evaluates_little=True), strict=True):
        if ran.finished.outcome is Outcome.DIVERGED:
            assert case["precision"] == "fp16-true"
            continue
        assert_it_did_what_it_says(case, ran)
        if is_exact(case):
            num_compared += 1
            assert ran.losses == pytest.approx(in_one_process(case).losses, abs=1e-4), case
    assert num_compared > 5
