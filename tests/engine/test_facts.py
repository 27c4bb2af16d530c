import platform

import pytest
import torch
import transformers

from jobs.contract.facts import DeviceFacts
from workers.engine import cuda_facts, facts
from workers.engine.cuda_facts import has_kernels_for, read_driver_version, read_gpus

GPU = DeviceFacts(kind="cuda", name="H100", memory_bytes=2**36, compute_capability=(9, 0), has_native_bf16=True)


def test_this_hosts_facts_are_read_without_a_gpu_and_without_importing_torch():
    host = facts.read_host_facts()
    assert host.devices[0].kind == "cpu"
    assert host.devices[0].name
    assert host.num_cpu_cores >= 1
    assert host.torch_version == torch.__version__
    assert host.cuda_version == torch.version.cuda
    assert host.python_version == platform.python_version()
    assert facts.read_host_facts_apart() == host


@pytest.mark.parametrize(
    ("flags", "native"),
    [("fpu avx512_bf16", True), ("fpu amx_bf16", True), ("fpu avx2 avx512f", False), ("", False)],
)
def test_a_cpu_computes_in_bfloat16_where_its_flags_say_so(monkeypatch, flags, native):
    monkeypatch.setattr(facts, "read_cpuinfo", lambda: {"model name": "X", "flags": flags})
    assert facts.read_cpu().has_native_bf16 is native


def test_an_arm_cpu_has_features_and_no_model_name(monkeypatch):
    monkeypatch.setattr(facts, "read_cpuinfo", lambda: {"Features": "fp asimd bf16"})
    assert facts.read_cpu().has_native_bf16
    assert facts.read_cpu().name


def test_a_missing_compiler_is_noticed(monkeypatch):
    monkeypatch.setattr(facts.shutil, "which", lambda _name: None)
    assert not facts.has_compiler()


@pytest.mark.parametrize(
    ("capability", "architectures", "runs"),
    [
        ((8, 0), ["sm_80"], True),
        ((8, 6), ["sm_80"], True),
        ((8, 0), ["sm_86"], False),
        ((9, 0), ["sm_80", "sm_86"], False),
        ((9, 0), ["sm_90a"], True),
        ((10, 0), ["sm_90", "compute_90"], True),
        ((12, 0), ["sm_120"], True),
        ((7, 0), ["sm_75", "compute_90"], False),
        ((7, 0), [], False),
    ],
)
def test_machine_code_runs_within_a_major_version_and_ptx_on_all_later_ones(capability, architectures, runs):
    assert has_kernels_for(capability, architectures) is runs


def test_a_run_is_stamped_with_its_libraries_and_hardware():
    host = facts.read_host_facts()
    versions = facts.versions_of(host)
    assert versions["transformers"] == transformers.__version__
    named = {"engine", "python", "torch", "transformers", "torchao", "cuda", "driver", "cudnn", "nccl"}
    assert versions.keys() == named
    two = host.model_copy(update={"devices": [*host.devices, *(GPU.model_copy(update={"index": i}) for i in range(3))]})
    assert [device.index for device in facts.hardware_of(two, "cuda", 2).devices] == [0, 1]
    assert facts.hardware_of(host, "cpu", 2).devices == host.devices_of("cpu")
    assert facts.hardware_of(host, "cpu", 2).num_cpu_cores == host.num_cpu_cores


def test_cudas_libraries_are_told_where_torch_has_them(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "is_available", lambda: True)
    monkeypatch.setattr(torch.backends.cudnn, "version", lambda: 91002)
    monkeypatch.setattr(cuda_facts, "is_nccl_available", lambda: True)
    monkeypatch.setattr(torch.cuda.nccl, "version", lambda: (2, 27, 3))
    assert cuda_facts.read_library_versions() == {"cudnn": "91002", "nccl": "2.27.3"}


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_host_without_a_gpu_lists_none():
    assert read_gpus() == []
    assert read_driver_version() is None
