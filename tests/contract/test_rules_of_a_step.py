"""Rules about how a step is computed, each on both of its sides."""

import pytest
from test_rules import CPU, GPU, found, host, spec

from jobs.contract.catalog import BUILT_IN, Catalog, DataKind, ModelInfo
from jobs.contract.facts import DeviceFacts
from jobs.contract.rules import check, refusals


def gpu(capability=(8, 0), name="Some GPU", **changes) -> DeviceFacts:
    return GPU.model_copy(update={"compute_capability": capability, "name": name} | changes)


AMPERE, ADA, TURING = gpu(), gpu((8, 9)), gpu((7, 5))
GEFORCE = gpu((8, 9), "NVIDIA GeForce RTX 4090")
TWO = host(AMPERE, AMPERE)
DDP = {"parallelism": "ddp", "num_devices": 2}
FSDP = {"parallelism": "fsdp2", "num_devices": 2}
TWO_GPUS = {"parallelism": "data_parallel", "num_devices": 2}
COMPILED = {"compile_mode": "default"}
GRAPH = {"cuda_graph": True, "optimizer_impl": "fused"}
LONG = {"num_steps": 20}
ACCUMULATED = {"grad_accum_steps": 2}
TEXT = {"model": "gpt-tiny", "dataset": "stdlib-text"}
FP8 = {"precision": "fp8", **TEXT}
SEQUENCES = {"model": "bert-base", "dataset": "synthetic-sequences"}
IMAGES = {"model": "convnet"}
NORMED = {"model": "resnet18"}


@pytest.mark.parametrize(
    ("fields", "facts", "field", "words"),
    [
        ({"momentum": 0.9, "optimizer": "adam"}, host(), "momentum", "adam has no momentum option"),
        ({"optimizer": "rmsprop", "optimizer_impl": "fused"}, host(), "optimizer_impl", "rmsprop has no fused"),
        ({"optimizer": "sgd", "optimizer_impl": "capturable"}, host(AMPERE), "optimizer_impl", "sgd has no capturable"),
        ({"optimizer_impl": "capturable"}, host(), "optimizer_impl", "this job runs on the CPU"),
        ({**GRAPH, "drop_last": False}, host(AMPERE), "drop_last", "batches of one size only"),
        ({"warmup_steps": 5}, host(), "warmup_steps", "does not end within the run's 5 steps"),
        ({"class_weights": "balanced", **TEXT}, host(), "class_weights", "stdlib-text has no classes"),
        ({"precision": "tf32"}, host(), "precision", "tf32 is a mode of NVIDIA GPUs"),
        ({"precision": "tf32"}, host(TURING), "precision", "Some GPU has no tf32"),
        (FP8, host(has_torchao=True), "precision", "fp8 needs a GPU"),
        (FP8, host(AMPERE, has_torchao=True), "precision", "Some GPU has no fp8"),
        (FP8, host(ADA), "precision", "fp8 needs the package torchao"),
        ({"parallelism": "data_parallel", "num_devices": 2}, host(), "parallelism", "does nothing on a CPU"),
        ({"parallelism": "data_parallel"}, host(AMPERE), "num_devices", "two GPUs or more"),
        ({**TWO_GPUS, "micro_batch_size": 1}, TWO, "micro_batch_size", "splits each micro-batch"),
        ({**TWO_GPUS, **COMPILED, **TEXT, "compile_scope": "block"}, TWO, "compile_scope", "do not survive"),
        ({"ddp_bucket_cap_mb": 1}, host(), "ddp_bucket_cap_mb", "This option is for ddp"),
        ({"ddp_static_graph": True}, host(), "ddp_static_graph", "This option is for ddp"),
        ({"ddp_comm_hook": "powersgd"}, host(), "ddp_comm_hook", "This option is for ddp"),
        ({**DDP, "sync_batchnorm": True}, host(), "sync_batchnorm", "on GPUs only"),
        ({**DDP, "ddp_comm_hook": "bf16"}, host(), "ddp_comm_hook", "needs NCCL"),
        ({**DDP, "ddp_comm_hook": "powersgd", "ddp_bucket_cap_mb": 1}, host(), "ddp_bucket_cap_mb", "hangs"),
        (
            {**DDP, "ddp_comm_hook": "powersgd", "ddp_find_unused_parameters": True},
            host(),
            "ddp_find_unused_parameters",
            "cannot be combined",
        ),
        ({**DDP, "ddp_static_graph": True, "grad_accum_steps": 2}, host(), "ddp_static_graph", "accumulation"),
        ({"fsdp_cpu_offload": True}, host(), "fsdp_cpu_offload", "This option is for fsdp2"),
        ({**FSDP, "fsdp_cpu_offload": True}, host(), "fsdp_cpu_offload", "in the host's memory already"),
        (
            {**FSDP, "fsdp_cpu_offload": True, "optimizer_impl": "capturable"},
            TWO,
            "optimizer_impl",
            "offloaded ones are in host memory",
        ),
        ({"compile_scope": "block"}, host(), "compile_scope", "Nothing is compiled"),
        ({**GRAPH}, host(), "cuda_graph", "CUDA graphs need a GPU"),
        ({**GRAPH, "compile_mode": "max-autotune"}, host(AMPERE), "cuda_graph", "CUDA graphs of its own"),
        ({**FSDP, "optimizer": "sgd", "optimizer_impl": "fused"}, host(), "optimizer_impl", "share out a fused sgd"),
        ({**FSDP, "optimizer": "adagrad", "optimizer_impl": "fused"}, host(), "optimizer_impl", "a fused adagrad"),
        ({**GRAPH, **FSDP}, TWO, "cuda_graph", "A step of fsdp2 cannot be recorded"),
        ({**GRAPH, **DDP, **LONG, "ddp_comm_hook": "powersgd"}, TWO, "ddp_comm_hook", "waits for the GPU"),
        (
            {**GRAPH, **DDP, **LONG, "ddp_find_unused_parameters": True},
            TWO,
            "ddp_find_unused_parameters",
            "looked for on the host",
        ),
        (
            {**GRAPH, **TEXT, "activation_checkpointing": True, "dropout": 0.1},
            host(AMPERE),
            "dropout",
            "dropped differently",
        ),
        ({**GRAPH, "optimizer_impl": "foreach"}, host(AMPERE), "optimizer_impl", "capturable or a fused"),
        ({**GRAPH, "optimizer": "adagrad"}, host(AMPERE), "optimizer", "adagrad cannot be recorded"),
        (
            {**GRAPH, "optimizer_impl": "capturable", "precision": "fp16-mixed"},
            host(AMPERE),
            "optimizer_impl",
            "only a fused optimizer",
        ),
        ({**GRAPH, "num_steps": 3}, host(AMPERE), "num_steps", "recorded after 3 steps"),
        ({**GRAPH, **DDP, "num_steps": 11}, TWO, "num_steps", "recorded after 11 steps"),
        ({"cudnn_benchmark": True}, host(), "cudnn_benchmark", "cuDNN is for GPUs"),
        ({"expandable_segments": True}, host(), "expandable_segments", "the GPU's allocator"),
        ({**TEXT, "sdpa_backend": "cudnn"}, host(), "sdpa_backend", "math and flash"),
        ({**TEXT, "sdpa_backend": "flash"}, host(AMPERE), "sdpa_backend", "takes 16 bits only"),
        ({**FSDP, **IMAGES, "channels_last": True}, host(), "channels_last", "fsdp2 cannot share out"),
        ({"initial_loss_scale": 1024}, host(AMPERE), "initial_loss_scale", "Only fp16-mixed scales"),
        ({"activation_checkpointing": True}, host(), "activation_checkpointing", "no repeated blocks"),
        ({**IMAGES, **COMPILED, "compile_scope": "block"}, host(), "compile_scope", "no repeated blocks"),
        ({"build_on_device": True}, host(), "build_on_device", "made in the CPU's memory anyway"),
        ({"compile_mode": "reduce-overhead", **ACCUMULATED}, host(AMPERE), "compile_mode", "overwrite gradients"),
        ({"compile_mode": "max-autotune", **ACCUMULATED}, host(AMPERE), "compile_mode", "overwrite gradients"),
    ],
)
def test_a_refused_combination_says_why(fields, facts, field, words):
    refused = [(name, text) for severity, name, text in found(spec(**fields), facts) if severity == "refuse"]
    assert len(refused) == 1
    assert refused[0][0] == field
    assert words in refused[0][1]


@pytest.mark.parametrize(
    ("fields", "facts", "field", "words"),
    [
        ({"precision": "fp16-mixed"}, host(), "precision", "fp16 on a CPU"),
        ({"precision": "bf16-true"}, host(AMPERE), "precision", "lose small updates"),
        ({"precision": "fp16-true"}, host(AMPERE), "precision", "no gradient scaler"),
        ({"precision": "tf32"}, host(GEFORCE), "precision", "the same peak as fp32"),
        (FP8, host(ADA, has_torchao=True), "compile_mode", "slower than bf16-mixed"),
        (
            {"precision": "fp8", **COMPILED},
            host(ADA, has_torchao=True),
            "precision",
            "last layer of mlp stays in bf16: 10 outputs",
        ),
        ({**TWO_GPUS, **COMPILED}, TWO, "compile_mode", "gains little"),
        ({**DDP, "ddp_comm_hook": "powersgd"}, TWO, "ddp_comm_hook", "changes the loss"),
        (
            {**DDP, "ddp_find_unused_parameters": True, "ddp_static_graph": True},
            TWO,
            "ddp_find_unused_parameters",
            "found once",
        ),
        ({**COMPILED, "drop_last": False}, host(), "drop_last", "compiled again"),
        ({"compile_mode": "reduce-overhead"}, host(), "compile_mode", "on a CPU it compiles as default does"),
        ({"compile_mode": "reduce-overhead", **ACCUMULATED}, host(), "compile_mode", "compiles as default does"),
        ({"compile_mode": "max-autotune"}, host(), "compile_mode", "on a CPU it only tries out kernels"),
        (
            {**IMAGES, "cudnn_benchmark": True, "deterministic": True},
            host(AMPERE),
            "cudnn_benchmark",
            "little to choose",
        ),
        ({"parallelism": "fsdp2"}, host(AMPERE), "parallelism", "fsdp2 on one device only measures"),
        ({**FSDP, "precision": "fp16-mixed"}, TWO, "initial_loss_scale", "Try 1024"),
        ({"channels_last": True}, host(), "channels_last", "nothing that this option could change"),
        ({**TEXT, "cudnn_benchmark": True}, host(AMPERE), "cudnn_benchmark", "nothing that this option could change"),
        ({**DDP, **IMAGES, "sync_batchnorm": True}, TWO, "sync_batchnorm", "nothing that this option could change"),
        ({**IMAGES, "sdpa_backend": "math"}, host(), "sdpa_backend", "nothing that this option could change"),
        ({"build_on_device": True}, host(AMPERE), "build_on_device", "do not pair by seed"),
    ],
)
def test_a_doubtful_combination_is_only_warned_about(fields, facts, field, words):
    [(severity, name, text)] = found(spec(**fields), facts)
    assert (severity, name) == ("warn", field)
    assert words in text


@pytest.mark.parametrize(
    ("fields", "facts"),
    [
        ({"drop_last": False, "grad_accum_steps": 2}, host()),
        ({"momentum": 0.9, "optimizer": "sgd"}, host()),
        ({"momentum": 0.9, "optimizer": "rmsprop"}, host()),
        ({"optimizer": "adagrad", "optimizer_impl": "fused"}, host()),
        ({"optimizer": "rmsprop", "optimizer_impl": "capturable"}, host(AMPERE)),
        ({"warmup_steps": 4}, host()),
        ({"class_weights": "balanced"}, host()),
        ({"precision": "tf32"}, host(AMPERE)),
        ({"precision": "fp16-mixed"}, host(AMPERE)),
        ({**FP8, **COMPILED}, host(ADA, has_torchao=True)),
        ({**FP8, **COMPILED, "model": "llama-160m"}, host(ADA, has_torchao=True)),
        (TWO_GPUS, TWO),
        ({**DDP, **NORMED, "ddp_comm_hook": "bf16", "sync_batchnorm": True, "ddp_bucket_cap_mb": 1}, TWO),
        ({**DDP, "ddp_static_graph": True, "ddp_gradient_as_bucket_view": True}, host()),
        ({**FSDP, "fsdp_cpu_offload": True, "precision": "fp16-mixed", "initial_loss_scale": 1024}, TWO),
        ({**COMPILED, **NORMED, "compile_scope": "block"}, host()),
        ({**TEXT, "activation_checkpointing": True}, host()),
        ({**IMAGES, "channels_last": True}, host()),
        ({**DDP, **IMAGES, "channels_last": True}, TWO),
        ({**GRAPH, **COMPILED}, host(AMPERE)),
        ({"compile_mode": "reduce-overhead"}, host(AMPERE)),
        ({"compile_mode": "max-autotune"}, host(AMPERE)),
        ({"compile_mode": "max-autotune-no-cudagraphs", **ACCUMULATED}, host(AMPERE)),
        ({**GRAPH, "optimizer_impl": "capturable"}, host(AMPERE)),
        ({**GRAPH, "precision": "fp16-mixed"}, host(AMPERE)),
        ({**GRAPH, **DDP, "num_steps": 12}, TWO),
        ({**IMAGES, "cudnn_benchmark": True}, host(AMPERE)),
        ({"expandable_segments": True}, host(AMPERE)),
        ({**TEXT, "sdpa_backend": "flash"}, host()),
        ({**TEXT, "sdpa_backend": "flash", "precision": "bf16-mixed"}, host(AMPERE)),
        ({**TEXT, "sdpa_backend": "efficient"}, host(AMPERE)),
    ],
)
def test_the_other_side_of_each_rule_passes_without_a_word(fields, facts):
    assert found(spec(**fields), facts) == []


@pytest.mark.parametrize(("num_steps", "fields"), [(2, {"num_steps", "ddp_comm_hook"}), (3, {"ddp_comm_hook"})])
def test_powersgd_that_would_compress_nothing_is_warned_about(num_steps, fields):
    warned = found(spec(**DDP, ddp_comm_hook="powersgd", num_steps=num_steps), TWO)
    assert {field for _severity, field, _sentence in warned} == fields


def catalog_with(**changes) -> Catalog:
    """The built-in one, its labelled sequences changed."""
    datasets = [
        info.model_copy(update=changes) if info.name == SEQUENCES["dataset"] else info for info in BUILT_IN.datasets
    ]
    return BUILT_IN.model_copy(update={"datasets": datasets})


@pytest.mark.parametrize(
    ("is_padded", "backend", "facts", "is_refused"),
    [
        (True, "flash", host(AMPERE), True),
        (True, "efficient", host(AMPERE), False),
        (True, "flash", host(), False),
        (False, "flash", host(AMPERE), False),
    ],
)
def test_flash_attention_cannot_mask_what_fills_up_sequences_on_a_gpu(is_padded, backend, facts, is_refused):
    asked = spec(**SEQUENCES, sdpa_backend=backend, precision="fp16-mixed")
    refused = refusals(check(asked, facts, catalog_with(is_padded=is_padded)))
    assert [finding.field for finding in refused] == ["sdpa_backend"] * is_refused


def test_of_a_model_whose_parts_nobody_listed_the_rules_say_nothing():
    team = ModelInfo(name="team-net", description="ours", takes=[DataKind.IMAGES])
    catalog = BUILT_IN.model_copy(update={"models": [*BUILT_IN.models, team]})
    asked = spec(model="team-net", channels_last=True, activation_checkpointing=True, sdpa_backend="math")
    assert check(asked, host(), catalog) == []
    assert check(asked.model_copy(update={"precision": "fp8", "compile_mode": "default"}), None, catalog) == []


def test_the_plain_cpu_of_these_tests_has_no_bf16():
    assert not CPU.has_native_bf16
