import gzip
import json

import pytest
from engine_runs import DIGITS, Recording, run_command, write_spec

from jobs.contract.events import Artifact
from jobs.contract.spec import TrainSpec
from workers.engine.files import RunFiles
from workers.engine.parallel import Rank
from workers.engine.profiler import library_of
from workers.engine.report import Report
from workers.engine.run import run

NUM_STEPS = 3


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
    """Events and folder of a digits run with a profile."""
    folder = tmp_path_factory.mktemp("artifacts")
    recording = Recording()
    run(TrainSpec(**DIGITS, profile_steps=NUM_STEPS), Report(recording), Rank(), 0.0, RunFiles(artifacts=folder))
    return recording.events, folder


def test_the_files_are_announced_and_there(profiled):
    events, folder = profiled
    announced = {event.kind: event for event in events if isinstance(event, Artifact)}
    assert set(announced) == {"operators", "trace"}
    for event in announced.values():
        assert (folder / event.file).stat().st_size == event.size_bytes > 0


def test_each_operator_is_counted_as_often_as_it_ran(profiled):
    _events, folder = profiled
    table = json.loads((folder / "profile" / "operators.json").read_text())
    counts = {row["name"]: row["count"] for row in table["operators"]}
    assert counts["aten::addmm"] == 2 * NUM_STEPS  # two linear layers
    times_us = [row["self_cpu_us"] for row in table["operators"]]
    assert times_us == sorted(times_us, reverse=True)
    assert all(row["cpu_us"] >= row["self_cpu_us"] for row in table["operators"])


def test_self_time_is_grouped_by_library(profiled):
    _events, folder = profiled
    table = json.loads((folder / "profile" / "operators.json").read_text())
    shares = {row["library"]: row["share"] for row in table["libraries"]}
    assert {"BLAS", "ATen"} <= set(shares)
    assert sum(shares.values()) == pytest.approx(1)


def test_the_trace_holds_the_profiled_steps(profiled):
    _events, folder = profiled
    trace = json.loads(gzip.decompress((folder / "profile" / "trace.json.gz").read_bytes()))
    names = [event.get("name", "") for event in trace["traceEvents"]]
    assert sum(name.startswith("ProfilerStep#") for name in names) >= NUM_STEPS
    assert "aten::addmm" in names


def test_profiling_changes_no_result(profiled, baseline):
    events, _folder = profiled
    losses = [loss for event in events if event.type == "points" for loss in event.series.get("train_loss", [])]
    assert losses == pytest.approx(baseline.losses, abs=1e-6)


def test_one_of_two_ranks_is_profiled(tmp_path):
    spec = write_spec(tmp_path, parallelism="ddp", num_devices=2, micro_batch_size=8, profile_steps=1)
    ran = run_command(spec, "--artifacts", str(tmp_path / "artifacts"))
    assert ran.exit_code == 0, ran.stderr
    assert (tmp_path / "artifacts" / "profile" / "trace.json.gz").exists()


def test_a_profile_without_a_folder_is_refused(tmp_path):
    ran = run_command(write_spec(tmp_path, profile_steps=1))
    assert (ran.exit_code, ran.finished.error.findings[0].field) == (3, "profile_steps")


@pytest.mark.parametrize(
    ("name", "library"),
    [
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_cublas", "cuBLAS"),
        ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_nn_align4>", "cuBLAS"),
        ("cudnn::bn_fw_tr_1C11_kernel_NCHW", "cuDNN"),
        ("sm80_xmma_fprop_implicit_gemm_bf16", "cuDNN"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "NCCL"),
        ("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits>", "attention"),
        ("void vector_fft<64u>", "cuFFT"),
        ("triton_poi_fused_add_0", "Triton"),
        ("void at::native::vectorized_elementwise_kernel<4>", "ATen"),
        ("Memcpy HtoD (Pinned -> Device)", "memory"),
        ("aten::mkldnn_convolution", "oneDNN"),
        ("aten::addmm", "BLAS"),
        ("aten::add_", "ATen"),
        ("something else", "other"),
    ],
)
def test_names_tell_the_library(name, library):
    assert library_of(name) == library
