import pytest

from jobs.contract.catalog import BUILT_IN
from jobs.contract.facts import DeviceFacts, HostFacts
from jobs.contract.findings import Severity
from jobs.contract.rules import RULES, check, refusals, resolve_device_kind
from jobs.contract.spec import TrainSpec

CPU = DeviceFacts(kind="cpu", name="Plain CPU", memory_bytes=2**33, has_native_bf16=False)
MODELS = ", ".join(info.name for info in BUILT_IN.models)
DATASETS = ", ".join(info.name for info in BUILT_IN.datasets)
GPU = DeviceFacts(kind="cuda", name="Some GPU", memory_bytes=2**34, has_native_bf16=True)


def host(*devices, **changes) -> HostFacts:
    facts = {"hostname": "h", "devices": [CPU, *devices], "num_cpu_cores": 2, "has_compiler": True}
    return HostFacts(**facts | {"torch_version": "2", "python_version": "3"} | changes)


def spec(**fields) -> TrainSpec:
    return TrainSpec(**{"model": "mlp", "dataset": "digits", "num_steps": 5} | fields)


def found(asked: TrainSpec, facts: HostFacts | None = None) -> list[tuple[str, str, str]]:
    return [(finding.severity.value, finding.field, finding.sentence) for finding in check(asked, facts, BUILT_IN)]


def test_an_ordinary_spec_passes_without_a_word():
    assert found(spec(), host()) == []


@pytest.mark.parametrize(
    ("fields", "field", "sentence"),
    [
        ({"model": "resnet"}, "model", f"There is no model “resnet”. Choose one of {MODELS}."),
        (
            {"dataset": "cifar"},
            "dataset",
            f"There is no data set “cifar”. Choose one of {DATASETS}.",
        ),
        (
            {"model": "gpt-tiny"},
            "dataset",
            "The model gpt-tiny cannot train on digits. Choose stdlib-text, synthetic-tokens.",
        ),
        ({"num_steps": None}, "num_steps", "Say how long to train: give either steps or epochs."),
        ({"num_epochs": 1}, "num_epochs", "Give either steps or epochs, not both."),
        (
            {"micro_batch_size": 1438},
            "micro_batch_size",
            "The global batch of 1438 is larger than the training split of digits (1437 samples).",
        ),
        (
            {"num_devices": 2},
            "num_devices",
            "Without parallelism a job uses one device. Choose ddp or set devices to 1.",
        ),
        (
            {"num_nodes": 2},
            "num_nodes",
            "Several nodes share the work as ranks. Choose ddp or fsdp2, or set nodes to 1.",
        ),
        ({"device": "cuda"}, "device", "This worker has no CUDA GPU. Choose cpu or auto."),
        (
            {"num_workers": 2},
            "num_workers",
            "The data set lives on the device; choose the dataloader to use this option.",
        ),
        (
            {"data_loading": "dataloader", "prefetch_factor": 2},
            "prefetch_factor",
            "This option needs at least one loader worker.",
        ),
        (
            {"data_loading": "dataloader", "persistent_workers": True},
            "persistent_workers",
            "This option needs at least one loader worker.",
        ),
        (
            {"data_loading": "dataloader", "pin_memory": True},
            "pin_memory",
            "Pinned memory speeds up copies to a GPU; this job runs on the CPU.",
        ),
        (
            {"data_loading": "dataloader", "non_blocking": True},
            "non_blocking",
            "Non-blocking copies need pinned memory.",
        ),
    ],
)
def test_a_refused_combination_says_what_to_change(fields, field, sentence):
    assert found(spec(**fields), host()) == [("refuse", field, sentence)]


def test_more_gpus_than_there_are_is_refused():
    asked = spec(device="cuda", parallelism="ddp", num_devices=2)
    assert found(asked, host(GPU)) == [("refuse", "num_devices", "The job asks for 2 GPUs; this worker has 1.")]


def test_a_gpu_without_kernels_is_refused():
    old = GPU.model_copy(update={"has_kernels": False})
    assert ("refuse", "device", "The installed PyTorch has no kernels for Some GPU.") in found(spec(), host(old))


def test_compiling_without_a_compiler_is_refused():
    findings = found(spec(compile_mode="default"), host(has_compiler=False))
    assert [finding[:2] for finding in findings] == [("refuse", "compile_mode")]


@pytest.mark.parametrize(
    ("fields", "field", "sentence"),
    [
        ({"parallelism": "ddp"}, "parallelism", "ddp on one device only measures its overhead."),
        (
            {"precision": "bf16-mixed"},
            "precision",
            "Plain CPU emulates bfloat16: the loss is right, but it may be slower than fp32.",
        ),
        (
            {"parallelism": "ddp", "num_devices": 3},
            "num_devices",
            "3 processes share 2 CPU cores; they will slow each other down.",
        ),
        (
            {"num_threads": 2},
            "num_threads",
            "2 threads leave none of 2 cores free; anything else on the host slows the steps a lot.",
        ),
    ],
)
def test_a_doubtful_combination_is_only_warned_about(fields, field, sentence):
    assert found(spec(**fields), host()) == [("warn", field, sentence)]


def test_without_facts_a_rule_about_the_machine_says_nothing():
    assert found(spec(device="cuda", compile_mode="default", precision="bf16-mixed")) == []


def test_auto_takes_a_gpu_where_there_is_one():
    assert resolve_device_kind(spec(), host()) == "cpu"
    assert resolve_device_kind(spec(), host(GPU)) == "cuda"
    assert resolve_device_kind(spec(device="cpu"), host(GPU)) == "cpu"


def test_refusals_come_before_warnings():
    findings = check(spec(parallelism="ddp", num_epochs=1), host(), BUILT_IN)
    assert [finding.severity for finding in findings] == [Severity.REFUSE, Severity.WARN]
    assert refusals(findings) == findings[:1]


def test_every_rule_explains_itself():
    for rule in RULES:
        assert rule.__doc__, rule.__name__
