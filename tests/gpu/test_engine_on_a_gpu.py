"""The engine on a real GPU, without Django. `make test-gpu` runs this folder; every other command leaves it out."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

PROJECT_ROOT = Path(__file__).resolve().parent.parent.parent
MLP = {"model": "mlp", "dataset": "digits", "device": "cuda", "num_steps": 200, "micro_batch_size": 64}
DATA_MISSING = 4  # the digits come with scikit-learn, which a machine with a GPU need not have
GPT = {"model": "gpt-tiny", "dataset": "stdlib-text", "device": "cuda", "num_steps": 60, "micro_batch_size": 32}

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no CUDA GPU"),
]


def events_of(result: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    if result.returncode == DATA_MISSING:
        pytest.skip(result.stderr.splitlines()[-1])
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def run_engine(folder: Path, **spec: Any) -> list[dict[str, Any]]:
    path = folder / "spec.json"
    path.write_text(json.dumps(spec))
    command = [sys.executable, "-m", "workers.engine", "run", str(path)]
    result = subprocess.run(command, cwd=PROJECT_ROOT, capture_output=True, text=True, timeout=300)
    return events_of(result)


def losses(events: list[dict[str, Any]]) -> list[float]:
    points = [event for event in events if event["type"] == "points"]
    return [float(value) for event in points for value in event["series"].get("train_loss", [])]


def test_the_loss_falls_and_the_gpus_memory_is_measured(tmp_path: Path) -> None:
    events = run_engine(tmp_path, **MLP)
    summary = events[-1]["summary"]
    assert losses(events)[-1] < losses(events)[0] / 2
    assert summary["device_name"] == torch.cuda.get_device_name(0)
    assert 0 < summary["peak_allocated_bytes"] <= summary["peak_reserved_bytes"]


def test_the_gpu_and_the_cpu_train_alike_from_the_same_seed(tmp_path: Path) -> None:
    on_gpu, on_cpu = (losses(run_engine(tmp_path, **(MLP | {"device": kind}))) for kind in ("cuda", "cpu"))
    assert on_gpu[:20] == pytest.approx(on_cpu[:20], rel=1e-3)


def test_bf16_mixed_computes_in_bfloat16(tmp_path: Path) -> None:
    events = run_engine(tmp_path, **GPT, precision="bf16-mixed")
    assert events[-1]["summary"]["observed_dtype"] == "bfloat16"
    assert losses(events)[-1] < losses(events)[0]


def test_the_compiled_model_trains_as_the_eager_one_does(tmp_path: Path) -> None:
    eager, compiled = (losses(run_engine(tmp_path, **GPT, compile_mode=mode)) for mode in ("off", "default"))
    assert compiled[:20] == pytest.approx(eager[:20], rel=1e-2)


def test_pinned_non_blocking_loading_sees_the_same_batches(tmp_path: Path) -> None:
    resident = losses(run_engine(tmp_path, **MLP))
    loaded = losses(
        run_engine(tmp_path, **MLP, data_loading="dataloader", num_workers=2, pin_memory=True, non_blocking=True)
    )
    assert loaded[:50] == pytest.approx(resident[:50], rel=1e-4)


def test_ddp_on_one_gpu_measures_its_overhead_and_changes_no_loss(tmp_path: Path) -> None:
    plain, wrapped = (losses(run_engine(tmp_path, **MLP, parallelism=kind)) for kind in ("none", "ddp"))
    assert wrapped[:50] == pytest.approx(plain[:50], rel=1e-4)


def test_a_model_built_on_the_gpu_trains_as_well(tmp_path: Path) -> None:
    events = run_engine(tmp_path, **MLP, build_on_device=True)
    assert losses(events)[-1] < losses(events)[0] / 2


def test_inference_on_the_gpu_goes_forward_only(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    summary = run_engine(tmp_path, **(GPT | {"model": "gpt2", "task": "inference"}))[-1]["summary"]
    assert summary["samples_per_s"] > 0
    assert summary["phase_backward_ms"] is None


def test_a_transformer_takes_the_flash_kernel_and_waits_for_nothing(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from workers.engine.data import load_dataset
    from workers.engine.models import build_model

    dataset = load_dataset("stdlib-text")
    model = build_model("gpt2", dataset).to("cuda", torch.bfloat16)
    inputs, _targets = dataset.train.to(torch.device("cuda")).take(torch.arange(2, device="cuda"))
    torch.cuda.set_sync_debug_mode("error")
    try:
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
            model(inputs)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def run_with_files(folder: Path, *options: str, **spec: Any) -> list[dict[str, Any]]:
    path = folder / "spec.json"
    path.write_text(json.dumps(spec))
    command = [sys.executable, "-m", "workers.engine", "run", str(path), "--artifacts", str(folder / "out"), *options]
    result = subprocess.run(command, cwd=PROJECT_ROOT, capture_output=True, text=True, timeout=300)
    return events_of(result)


def test_step_times_by_events_agree_with_the_hosts_clock(tmp_path: Path) -> None:
    summary = run_engine(tmp_path, **GPT)[-1]["summary"]
    assert summary["step_time_p50_ms"] == pytest.approx(summary["steady_step_time_ms"], rel=0.1)


def test_parts_of_a_step_are_timed_and_batches_from_the_host_are_copied(tmp_path: Path) -> None:
    summary = run_engine(tmp_path, **MLP, data_loading="dataloader", pin_memory=True)[-1]["summary"]
    for part in ("data_wait", "host_to_device", "forward", "backward", "optimizer"):
        assert summary[f"phase_{part}_ms"] > 0


def test_nvml_sees_power_clocks_and_the_memory_with_its_context(tmp_path: Path) -> None:
    pytest.importorskip("pynvml")
    events = run_engine(tmp_path, **(MLP | {"num_steps": 20_000}))
    summary = events[-1]["summary"]
    assert summary["peak_device_used_bytes"] > summary["peak_reserved_bytes"]
    assert summary["energy_j"] > 0
    names = {name for event in events if event["type"] == "points" for name in event["series"]}
    assert {"telemetry.gpu_power_w", "telemetry.gpu_sm_clock_mhz", "telemetry.gpu_foreign_processes"} <= names


def test_a_profile_names_kernels_by_library_and_leaves_a_memory_snapshot(tmp_path: Path) -> None:
    events = run_with_files(tmp_path, **MLP, profile_steps=3)
    kinds = {event["kind"] for event in events if event["type"] == "artifact"}
    assert kinds == {"operators", "trace", "memory_snapshot"}
    table = json.loads((tmp_path / "out" / "profile" / "operators.json").read_text())
    assert table["sorted_by"] == "self_device_us"
    assert {"cuBLAS", "ATen"} <= {row["library"] for row in table["libraries"]}


def test_a_resumed_run_on_a_gpu_equals_an_unbroken_one(tmp_path: Path) -> None:
    whole = losses(run_with_files(tmp_path, **MLP, checkpoint_every_steps=100))
    checkpoint = tmp_path / "out" / "checkpoints" / "step-000000100.pt"
    resumed = losses(run_with_files(tmp_path, "--resume", str(checkpoint), **MLP, checkpoint_every_steps=100))
    assert resumed == pytest.approx(whole[100:], rel=1e-4)


def test_a_gpu_that_is_too_small_tells_figures_and_a_proposal(tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(GPT | {"micro_batch_size": 1_000_000 // 32}))
    command = [sys.executable, "-m", "workers.engine", "run", str(path)]
    limited = "import torch; torch.cuda.set_per_process_memory_fraction(0.02)"
    (tmp_path / "sitecustomize.py").write_text(limited)
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}:{PROJECT_ROOT}"}
    result = subprocess.run(command, cwd=PROJECT_ROOT, env=environment, capture_output=True, text=True, timeout=300)
    error = json.loads(result.stdout.splitlines()[-1])["error"]
    assert result.returncode == 6, result.stderr
    assert error["memory"]["asked_bytes"] > 0
    assert error["memory"]["reserved_bytes"] >= error["memory"]["allocated_bytes"] > 0
    assert error["proposed_spec"]["grad_accum_steps"] == 2
