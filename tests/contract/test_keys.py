import pytest

from jobs.contract.keys import environment_key, workload_key
from jobs.contract.options import Role
from jobs.contract.spec import TrainSpec, fields_with_role

BASE = TrainSpec(model="mlp", dataset="digits", num_steps=100, micro_batch_size=16)


def key(revision="r1", **changes) -> str:
    return workload_key(TrainSpec(**BASE.model_dump() | changes), revision)


def test_a_length_in_epochs_and_the_same_in_steps_have_one_key():
    assert key(num_epochs=2) == key()


def test_the_number_of_steps_must_be_resolved():
    with pytest.raises(ValueError, match="resolved"):
        key(num_steps=None)


def test_the_seed_is_in_neither_key():
    assert key(seed=7) == key()


CONFIGURATION = {
    "device": "cuda",
    "precision": "bf16-mixed",
    "num_threads": 2,
    "initial_loss_scale": 1024.0,
    "build_on_device": True,
    "compile_mode": "default",
    "data_loading": "dataloader",
    "num_workers": 2,
    "prefetch_factor": 2,
    "persistent_workers": True,
    "pin_memory": True,
    "non_blocking": True,
    "phase_steps": 0,
    "profile_steps": 3,
    "checkpoint_every_steps": 10,
    "time_limit_s": 60.0,
    "optimizer_impl": "fused",
    "compile_scope": "block",
    "cuda_graph": True,
    "channels_last": True,
    "cudnn_benchmark": True,
    "deterministic": True,
    "sdpa_backend": "math",
    "activation_checkpointing": True,
    "expandable_segments": True,
    "ddp_bucket_cap_mb": 1,
    "ddp_gradient_as_bucket_view": True,
    "ddp_static_graph": True,
    "ddp_find_unused_parameters": True,
    "ddp_comm_hook": "bf16",
    "sync_batchnorm": True,
    "fsdp_cpu_offload": True,
    "zero_grad_set_to_none": False,
}


@pytest.mark.parametrize(("field", "value"), CONFIGURATION.items())
def test_a_configuration_field_does_not_change_the_workload(field, value):
    assert key(**{field: value}) == key()


def test_every_configuration_field_is_held_here_or_by_the_global_batch():
    by_batch = {"micro_batch_size", "grad_accum_steps", "num_devices", "num_nodes", "parallelism"}
    assert set(fields_with_role(Role.CONFIGURATION)) == set(CONFIGURATION) | by_batch


def test_the_same_global_batch_is_the_same_work_however_it_is_split():
    assert key(micro_batch_size=8, grad_accum_steps=2) == key()
    assert key(micro_batch_size=8, num_devices=2, parallelism="ddp") == key()
    assert key(micro_batch_size=8, num_nodes=2, parallelism="ddp") == key()


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "convnet"},
        {"dataset": "stdlib-text"},
        {"num_steps": 101},
        {"micro_batch_size": 32},
        {"optimizer": "sgd"},
        {"learning_rate": 0.5},
        {"drop_last": False},
        {"lr_schedule": "cosine"},
        {"warmup_steps": 3},
        {"weight_decay": 0.1},
        {"momentum": 0.9},
        {"grad_clip_norm": 1.0},
        {"class_weights": "balanced"},
        {"revision": "r2"},
    ],
)
def test_other_work_has_another_key(changes):
    assert key(**changes) != key()


def test_the_environment_is_device_driver_torch_and_engine():
    versions = {"torch": "2.13", "driver": "1", "engine": "0", "python": "3.11"}
    base = environment_key("GPU", versions)
    assert environment_key("GPU", versions | {"python": "3.12"}) == base
    for other in ({"torch": "2.12"}, {"driver": "2"}, {"engine": "1"}):
        assert environment_key("GPU", versions | other) != base
    assert environment_key("other GPU", versions) != base
