"""What this host is: processors, GPUs, compiler and versions. Imports torch only where its build knows CUDA."""

import json
import os
import platform
import runpy
import shutil
import socket
import subprocess
import sys
import sysconfig
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from jobs.contract.facts import ENGINE_VERSION, DeviceFacts, Hardware, HostFacts
from workers.engine.death import PARENT_PID_VARIABLE

CUDA_LIBRARIES = ("cudnn", "nccl")
_BF16_FLAGS = {"avx512_bf16", "amx_bf16", "bf16"}  # x86 and, last, arm64


def read_host_facts(*, with_gpus: bool = True) -> HostFacts:
    """This host's facts. Asking for GPUs on a CUDA build of torch starts CUDA in the calling process."""
    torch_version, cuda_version = read_torch_build()
    gpus: list[DeviceFacts] = []
    driver_version = None
    if cuda_version is not None:
        cuda_facts = import_module("workers.engine.cuda_facts")
        gpus = cuda_facts.read_gpus() if with_gpus else []
        driver_version = cuda_facts.read_driver_version()
    return HostFacts(
        hostname=socket.gethostname(),
        devices=[read_cpu(), *gpus],
        num_cpu_cores=num_usable_cores(),
        has_compiler=has_compiler(),
        has_torchao=find_spec("torchao") is not None,
        torch_version=torch_version,
        python_version=platform.python_version(),
        cuda_version=cuda_version,
        driver_version=driver_version,
    )


def read_host_facts_apart() -> HostFacts:
    """The same, without starting CUDA in this process, where it would hold GPU memory while the ranks train."""
    _torch_version, cuda_version = read_torch_build()
    if cuda_version is None:
        return read_host_facts()
    command = [sys.executable, "-m", "workers.engine", "describe"]
    described = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment_for_children()).stdout
    return HostFacts.model_validate(json.loads(described)["facts"])


def environment_for_children() -> dict[str, str]:
    """This process's environment, in which children find the engine from any working directory."""
    environment = dict(os.environ)
    environment.pop(PARENT_PID_VARIABLE, None)  # it names our parent, not theirs
    root = str(Path(__file__).parents[2])
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (root, environment.get("PYTHONPATH"))))
    return environment


def read_torch_build() -> tuple[str, str | None]:
    """The installed torch's version and the CUDA it was built for, without the second that importing torch costs."""
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("PyTorch is not installed in this environment.", name="torch")
    values = runpy.run_path(str(Path(spec.origin).with_name("version.py")))
    return values["__version__"], values["cuda"]


def read_cpu() -> DeviceFacts:
    """This host's processors as one device; memory in bytes."""
    cpuinfo = read_cpuinfo()
    return DeviceFacts(
        kind="cpu",
        name=cpuinfo.get("model name") or platform.processor() or platform.machine(),
        memory_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        has_native_bf16=not _BF16_FLAGS.isdisjoint((cpuinfo.get("flags") or cpuinfo.get("Features") or "").split()),
    )


@cache
def read_cpuinfo() -> dict[str, str]:
    """The first processor's entries in /proc/cpuinfo."""
    first = Path("/proc/cpuinfo").read_text().split("\n\n", 1)[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def num_usable_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0))


def has_compiler() -> bool:
    """Whether torch.compile can build its kernels here: a C++ compiler and Python's headers."""
    compilers = (os.environ.get("CXX"), "g++", "clang++")
    headers = Path(sysconfig.get_paths()["include"]) / "Python.h"
    return any(name and shutil.which(name) for name in compilers) and headers.exists()


def versions_of(facts: HostFacts) -> dict[str, str]:
    """The versions that a run is stamped with; empty where there is no such thing. CUDA's libraries cost torch."""
    versions = {
        "engine": ENGINE_VERSION,
        "python": facts.python_version,
        "torch": facts.torch_version,
        "transformers": _installed("transformers"),
        "torchao": _installed("torchao"),
        "cuda": facts.cuda_version or "",
        "driver": facts.driver_version or "",
    }
    if facts.cuda_version is None:
        return versions | dict.fromkeys(CUDA_LIBRARIES, "")
    libraries: dict[str, str] = import_module("workers.engine.cuda_facts").read_library_versions()
    return versions | libraries


def _installed(package: str) -> str:
    """A package's version, without importing it."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def hardware_of(facts: HostFacts, kind: str, num_devices: int, num_nodes: int = 1) -> Hardware:
    """What a run on `num_devices` devices of one kind has of this host; on a CPU all its processes share the one.

    Its other nodes are taken to be like this one.
    """
    devices = facts.devices_of(kind)[:num_devices]
    return Hardware(devices=devices, num_cpu_cores=facts.num_cpu_cores, num_nodes=num_nodes)
