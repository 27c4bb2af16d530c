"""How a step is computed, on a real GPU: each option against the plain run, and what it is seen to do."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

PROJECT_ROOT = Path(__file__).resolve().parent.parent.parent
MLP = {"model": "mlp", "dataset": "digits", "device": "cuda", "num_steps": 60, "micro_batch_size": 64}
CONVNET = MLP | {"model": "convnet"}
GPT = {"model": "gpt-tiny", "dataset": "stdlib-text", "device": "cuda", "num_steps": 30, "micro_batch_size": 16}
DATA_MISSING = 4  # the digits come with scikit-learn, which a machine with a GPU need not have
GRAPH = {"cuda_graph": True, "optimizer_impl": "fused"}
CAPABILITY = torch.cuda.get_device_capability() if torch.cuda.is_available() else (0, 0)

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no CUDA GPU"),
]
needs_two_gpus = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="this machine has fewer than two GPUs")
needs_ampere = pytest.mark.skipif(CAPABILITY < (8, 0), reason="needs compute capability 8.0")


class Ended:
    """A run of the engine as a process of its own."""

    def __init__(self, folder: Path, **spec: Any) -> None:
        path = folder / "spec.json"
        path.write_text(json.dumps(spec))
        command = [sys.executable, "-m", "workers.engine", "run", str(path)]
        ended = subprocess.run(command, cwd=PROJECT_ROOT, capture_output=True, text=True, timeout=600)
        self.exit_code, self.stderr = ended.returncode, ended.stderr
        if self.exit_code == DATA_MISSING:
            pytest.skip(ended.stderr.splitlines()[-1])
        self.events = [json.loads(line) for line in ended.stdout.splitlines()]
        self.summary = self.events[-1]["summary"]

    @property
    def losses(self) -> list[float]:
        points = [event for event in self.events if event["type"] == "points"]
        return [float(value) for event in points for value in event["series"].get("train_loss", [])]


def ran(folder: Path, **spec: Any) -> Ended:
    ended = Ended(folder, **spec)
    assert ended.exit_code == 0, ended.stderr
    return ended


@pytest.mark.parametrize(
    "fields",
    [
        {"optimizer_impl": "fused"},
        {"optimizer_impl": "capturable"},
        {"optimizer": "sgd", "momentum": 0.9, "learning_rate": 0.05},
        {"optimizer": "rmsprop", "optimizer_impl": "capturable"},
        {"lr_schedule": "cosine", "warmup_steps": 5},
        {"grad_accum_steps": 2, "micro_batch_size": 32},
        {"grad_clip_norm": 0.5},
        {"class_weights": "balanced"},
        {"precision": "fp16-mixed", "grad_clip_norm": 0.5},
    ],
    ids=str,
)
def test_the_recorded_step_trains_as_the_eager_one(tmp_path: Path, fields: dict[str, Any]) -> None:
    eager = ran(tmp_path, **MLP | GRAPH | fields | {"cuda_graph": False})
    graphed = ran(tmp_path, **MLP | GRAPH | fields)
    assert graphed.losses == pytest.approx(eager.losses, rel=1e-2, abs=1e-3)
    assert len(set(graphed.losses)) > 50  # a replay on old data would repeat itself
    assert graphed.summary["capture_s"] > 0
    assert eager.summary["capture_s"] is None


def test_the_recorded_step_goes_with_a_compiled_model(tmp_path: Path) -> None:
    eager, graphed = (ran(tmp_path, **MLP | GRAPH | {"cuda_graph": on}) for on in (False, True))
    compiled = ran(tmp_path, **MLP | GRAPH, compile_mode="default")
    assert compiled.losses == pytest.approx(eager.losses, rel=1e-2, abs=1e-3)
    assert compiled.losses == pytest.approx(graphed.losses, rel=1e-2, abs=1e-3)


def test_the_recorded_step_goes_with_ddp(tmp_path: Path) -> None:
    eager, graphed = (ran(tmp_path, **MLP | GRAPH | {"cuda_graph": on, "parallelism": "ddp"}) for on in (False, True))
    assert graphed.losses == pytest.approx(eager.losses, rel=1e-2, abs=1e-3)


@pytest.mark.parametrize("mode", ["reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"])
def test_every_compile_mode_trains_as_eager_does(tmp_path: Path, mode: str) -> None:
    eager, compiled = (ran(tmp_path, **GPT | {"num_steps": 20}, compile_mode=name) for name in ("off", mode))
    assert compiled.losses == pytest.approx(eager.losses, rel=2e-2)
    assert compiled.summary["num_recompiles"] == 0


@needs_ampere
def test_tf32_is_near_fp32_and_not_the_same(tmp_path: Path) -> None:
    ieee, tf32 = (ran(tmp_path, **GPT, precision=name) for name in ("fp32", "tf32"))
    assert (ieee.summary["fp32_arithmetic"], tf32.summary["fp32_arithmetic"]) == ("ieee", "tf32")
    assert tf32.losses == pytest.approx(ieee.losses, rel=2e-2)
    assert tf32.losses != ieee.losses


@pytest.mark.parametrize(
    ("precision", "dtype"), [("fp16-mixed", "float16"), ("bf16-true", "bfloat16"), ("fp16-true", "float16")]
)
def test_the_observed_dtype_is_the_one_asked_for(tmp_path: Path, precision: str, dtype: str) -> None:
    ended = ran(tmp_path, **GPT | {"optimizer": "sgd", "learning_rate": 0.1}, precision=precision)
    assert ended.summary["observed_dtype"] == dtype
    assert ended.losses[-1] < ended.losses[0]


@pytest.mark.skipif(CAPABILITY < (8, 9), reason="needs compute capability 8.9")
def test_fp8_trains_or_says_what_is_missing(tmp_path: Path) -> None:
    ended = Ended(tmp_path, **GPT, precision="fp8", compile_mode="default")
    if ended.exit_code == 3:
        assert "torchao" in ended.stderr
    else:
        assert ended.exit_code == 0, ended.stderr
        assert ended.losses[-1] < ended.losses[0]


@pytest.mark.parametrize(
    ("backend", "precision"),
    [("math", "fp32"), ("efficient", "fp32"), ("flash", "bf16-mixed"), ("cudnn", "bf16-mixed")],
)
def test_the_kernel_of_attention_is_the_one_asked_for(tmp_path: Path, backend: str, precision: str) -> None:
    ended = ran(tmp_path, **GPT, sdpa_backend=backend, precision=precision)
    assert ended.summary["attention_kernel"] == backend


@pytest.mark.parametrize(
    "fields",
    [{"channels_last": True}, {"cudnn_benchmark": True}, {"deterministic": True}, {"expandable_segments": True}],
    ids=str,
)
def test_a_switch_changes_no_loss(tmp_path: Path, fields: dict[str, Any]) -> None:
    assert ran(tmp_path, **CONVNET, **fields).losses == pytest.approx(ran(tmp_path, **CONVNET).losses, rel=1e-2)


def test_expandable_segments_reach_the_allocator() -> None:
    code = (
        "import os; from jobs.contract.spec import TrainSpec; from workers.engine.environment import environment_of;"
        "os.environ.update(environment_of(TrainSpec(expandable_segments=True))); import torch;"
        "torch.ones(1, device='cuda'); print(torch.cuda.memory._snapshot()['allocator_settings'])"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=PROJECT_ROOT, capture_output=True, text=True, check=True)
    assert "'expandable_segments': True" in ended.stdout


def test_deterministic_runs_are_equal_to_the_bit(tmp_path: Path) -> None:
    one, two = (ran(tmp_path, **CONVNET, deterministic=True) for _ in range(2))
    assert one.losses == two.losses


def test_checkpointed_activations_take_less_memory(tmp_path: Path) -> None:
    plain, checkpointed = (
        ran(tmp_path, **GPT | {"micro_batch_size": 128}, activation_checkpointing=on) for on in (False, True)
    )
    assert checkpointed.losses == pytest.approx(plain.losses, rel=1e-3)
    assert checkpointed.summary["peak_allocated_bytes"] < plain.summary["peak_allocated_bytes"]


FP16 = {"precision": "fp16-mixed", "initial_loss_scale": 1024.0}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"precision": "bf16-mixed"},
        {"fsdp_cpu_offload": True},
        {"fsdp_cpu_offload": True, "grad_clip_norm": 0.5, "optimizer_impl": "fused"},
        {"fsdp_cpu_offload": True, "grad_clip_norm": 0.5, **FP16},
    ],
    ids=str,
)
def test_fsdp2_on_one_gpu_trains_as_the_plain_run(tmp_path: Path, fields: dict[str, Any]) -> None:
    plain = ran(tmp_path, **GPT | fields | {"fsdp_cpu_offload": False})
    sharded = ran(tmp_path, **GPT, parallelism="fsdp2", **fields)
    assert sharded.losses == pytest.approx(plain.losses, rel=2e-2)


def test_activations_are_computed_again_in_a_recorded_step(tmp_path: Path) -> None:
    checkpointed = ran(tmp_path, **GPT, **GRAPH, activation_checkpointing=True)
    assert checkpointed.losses == pytest.approx(ran(tmp_path, **GPT, **GRAPH).losses, rel=1e-2)
    assert checkpointed.summary["capture_s"] > 0


@needs_two_gpus
@pytest.mark.parametrize("parallelism", ["data_parallel", "ddp", "fsdp2"])
def test_two_gpus_train_as_one(tmp_path: Path, parallelism: str) -> None:
    micro_batch_size = 16 if parallelism == "data_parallel" else 8
    shared = ran(tmp_path, **GPT | {"micro_batch_size": micro_batch_size}, parallelism=parallelism, num_devices=2)
    assert shared.losses == pytest.approx(ran(tmp_path, **GPT).losses, rel=1e-3)


@needs_two_gpus
@pytest.mark.parametrize("hook", ["bf16", "powersgd"])
def test_compressed_gradients_train_nearly_alike(tmp_path: Path, hook: str) -> None:
    ddp = GPT | {"parallelism": "ddp", "num_devices": 2, "micro_batch_size": 8}
    assert ran(tmp_path, **ddp, ddp_comm_hook=hook).losses == pytest.approx(ran(tmp_path, **ddp).losses, rel=5e-2)


RESNET = {"model": "resnet18", "dataset": "digits", "image_size": 32, "device": "cuda", "num_steps": 10}
RESNET |= {"micro_batch_size": 32, "learning_rate": 1e-4, "phase_steps": 0}


@pytest.mark.parametrize("count", [1, pytest.param(2, marks=needs_two_gpus)])
def test_synchronized_batch_norms_train_as_one_process_at_the_same_global_batch(tmp_path: Path, count: int) -> None:
    pytest.importorskip("transformers")
    plain = ran(tmp_path, **RESNET)
    ranks = RESNET | {"parallelism": "ddp", "num_devices": count, "micro_batch_size": 32 // count}
    synchronized = ran(tmp_path, **ranks, sync_batchnorm=True)
    assert synchronized.losses == pytest.approx(plain.losses, rel=1e-2)
    assert synchronized.summary["final_eval_loss"] == pytest.approx(plain.summary["final_eval_loss"], rel=2e-2)


@needs_two_gpus
def test_batch_norms_that_are_not_synchronized_train_otherwise(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    ranks = RESNET | {"parallelism": "ddp", "num_devices": 2, "micro_batch_size": 16}
    apart, synchronized = (ran(tmp_path, **ranks, sync_batchnorm=on) for on in (False, True))
    assert apart.losses != pytest.approx(synchronized.losses, rel=1e-3)


def test_a_tensor_left_on_the_host_is_named_with_the_one_that_it_meets() -> None:
    code = (
        "import torch; from workers.engine.failure import failure_from; from workers.engine.report import Report\n"
        "class Scaled(torch.nn.Module):\n"
        "    def __init__(self): super().__init__(); self.scale = torch.ones(4, 4)\n"
        "    def forward(self, inputs): return inputs @ self.scale\n"
        "try: torch.nn.Sequential(Scaled())(torch.ones(2, 4, device='cuda'))\n"
        "except RuntimeError as error: print(failure_from(error, Report(None)).error.message)"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=PROJECT_ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("In Scaled “0” “inputs” is on cuda:0 and its “scale” is on cpu.")
