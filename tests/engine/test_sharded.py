"""FSDP2 and DDP with its options on two gloo ranks, held against one process at the same global batch."""

import pytest
import torch
import torch.distributed as dist
from engine_runs import run_command, train, write_spec
from two_ranks import train_on_two_ranks

from jobs.contract.spec import TrainSpec
from workers.engine.parallel import process_group

GPT = {"model": "gpt-tiny", "dataset": "stdlib-text", "num_steps": 5, "phase_steps": 0}
FSDP = GPT | {"parallelism": "fsdp2", "num_devices": 2, "micro_batch_size": 2}
DDP = FSDP | {"parallelism": "ddp"}
ACCUMULATED = {"micro_batch_size": 1, "grad_accum_steps": 2}
CLIPPED = {"grad_clip_norm": 0.5, "optimizer_impl": "fused"}
# At torch's first scale of 65536 the sharded run skips its first step: embeddings and norms compute in fp16 there.
FP16 = {"precision": "fp16-mixed", "grad_clip_norm": 0.5, "initial_loss_scale": 1024.0}
HUGE = {"precision": "fp16-mixed", "optimizer": "sgd", "learning_rate": 100, "model": "mlp", "dataset": "digits"}
HUGE |= {"num_steps": 6, "micro_batch_size": 8}
MLP = {"model": "mlp", "dataset": "digits"}
COMPILED = {"compile_mode": "default"}
CONVNET = {"model": "convnet", "num_steps": 12}
LOADED = {"data_loading": "dataloader", "num_workers": 1, "micro_batch_size": 4, "grad_accum_steps": 2}
LOADED |= {"parallelism": "ddp"}


def one_process(**fields):
    return train(**GPT | {"micro_batch_size": 4} | fields)


@pytest.fixture(scope="module")
def in_one_process():
    return one_process()


def ranks(folder, **fields):
    """A run of their own, as a user starts it."""
    ran = run_command(write_spec(folder, **fields))
    assert ran.exit_code == 0, ran.stderr
    return ran


def assert_alike(ran, plain, tolerance=1e-5):
    assert ran.losses == pytest.approx(plain.losses, abs=tolerance)
    assert ran.summary.final_eval_loss == pytest.approx(plain.summary.final_eval_loss, abs=tolerance)


@pytest.fixture(scope="module")
def on_two_ranks(tmp_path_factory):
    """The cases that need no process of their own."""
    return train_on_two_ranks(
        tmp_path_factory.mktemp("ranks"),
        plain=FSDP,
        clipped=FSDP | ACCUMULATED | CLIPPED,
        fp16=FSDP | FP16,
        overflowing=FSDP | HUGE,
        powersgd=DDP | {"ddp_comm_hook": "powersgd"},
        loaded=CONVNET | LOADED,
        compiled_ddp=DDP | MLP | COMPILED,
        compiled_fsdp2=FSDP | MLP | COMPILED,
    )


def test_sharded_ranks_train_as_one_process_step_for_step(on_two_ranks, in_one_process):
    assert_alike(on_two_ranks["plain"], in_one_process)


def test_sharded_ranks_with_accumulation_clipping_and_a_fused_optimizer_train_as_one_process(on_two_ranks):
    assert_alike(on_two_ranks["clipped"], one_process(**CLIPPED))


def test_sharded_fp16_trains_as_one_process_where_no_scale_overflows(on_two_ranks):
    ran = on_two_ranks["fp16"]
    assert ran.summary.num_skipped_steps == 0
    assert_alike(ran, one_process(**FP16), tolerance=2e-3)


def test_a_gradient_that_overflows_on_one_shard_is_skipped_by_all_ranks(on_two_ranks):
    ran = on_two_ranks["overflowing"]
    assert ran.summary.observed_dtype == "float16"
    assert 0 < ran.summary.num_skipped_steps < 6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "tolerance"),
    [
        ({"precision": "bf16-mixed", "activation_checkpointing": True}, 0.02),
        ({"precision": "bf16-true", "optimizer_impl": "foreach"}, 0.05),
        ({"compile_mode": "default"}, 1e-4),
        ({"compile_mode": "default", "compile_scope": "block"}, 1e-4),
    ],
    ids=str,
)
def test_sharded_ranks_train_as_one_process_with(tmp_path, fields, tolerance):
    ran = ranks(tmp_path, **FSDP | fields)
    assert_alike(ran, one_process(**fields), tolerance)
    assert ran.summary.observed_dtype == one_process(**fields, num_steps=1).summary.observed_dtype


def test_two_ranks_with_accumulation_and_loaders_train_as_one_process(on_two_ranks):
    assert on_two_ranks["loaded"].losses == pytest.approx(train(**CONVNET).losses, abs=1e-5)


@pytest.mark.parametrize("parallelism", ["ddp", "fsdp2"])
def test_ranks_that_compile_the_whole_model_really_do(on_two_ranks, parallelism):
    ran = on_two_ranks[f"compiled_{parallelism}"]
    assert ran.summary.num_graphs >= 1
    assert_alike(ran, one_process(**MLP), 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("parallelism", ["ddp", "fsdp2"])
def test_ranks_that_compile_a_whole_transformer_really_do(tmp_path, in_one_process, parallelism):
    ran = ranks(tmp_path, **FSDP | COMPILED | {"parallelism": parallelism})
    assert ran.summary.num_graphs >= 1
    assert_alike(ran, in_one_process, 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    "fields",
    [
        {"ddp_bucket_cap_mb": 1, "ddp_gradient_as_bucket_view": True, "ddp_static_graph": True},
        {"ddp_find_unused_parameters": True, "zero_grad_set_to_none": False, **ACCUMULATED},
    ],
    ids=str,
)
def test_ddps_options_change_no_loss(tmp_path, fields):
    assert_alike(ranks(tmp_path, **DDP | fields), one_process())


def test_powersgd_compresses_so_the_loss_is_near_but_not_the_same(on_two_ranks, in_one_process):
    ran, plain = on_two_ranks["powersgd"], in_one_process
    assert ran.losses == pytest.approx(plain.losses, abs=0.05)
    assert ran.losses[-1] != pytest.approx(plain.losses[-1], abs=1e-4)


@pytest.mark.parametrize(("offload", "backend"), [(True, "cpu:gloo,cuda:nccl"), (False, "nccl")])
def test_offloaded_ranks_can_speak_from_the_hosts_memory_too(monkeypatch, offload, backend):
    asked = []
    monkeypatch.setattr(dist, "init_process_group", lambda backend, **_options: asked.append(backend))
    monkeypatch.setattr(dist, "destroy_process_group", lambda: None)
    with process_group(TrainSpec(parallelism="fsdp2", fsdp_cpu_offload=offload), torch.device("cuda", 0)):
        assert asked == [backend]
