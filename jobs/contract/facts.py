"""What an engine found out about the host it runs on: the ground on which rules decide."""

from pydantic import BaseModel, ConfigDict

ENGINE_VERSION = "0.1.0"


class Ceilings(BaseModel):
    """What one device was measured to reach, best of repeated runs: a ceiling that a user can reach."""

    model_config = ConfigDict(frozen=True)

    matmul_flops_per_s: dict[str, float]  # by arithmetic: fp32, tf32, fp16, bf16
    copy_bytes_per_s: float  # read plus written, within the device's memory


class Datasheet(BaseModel):
    """What the vendor says that a device can do at most: dense, without sparsity."""

    model_config = ConfigDict(frozen=True)

    matmul_flops_per_s: dict[str, float]  # by arithmetic: fp32, tf32, fp16, bf16, fp8; without those it does not name
    bytes_per_s: float | None = None  # of the device's memory


class DeviceFacts(BaseModel):
    """One device. A CPU is one device with index 0; memory is in bytes."""

    model_config = ConfigDict(frozen=True)

    kind: str  # "cpu" or "cuda"
    index: int = 0
    name: str
    uuid: str = ""
    memory_bytes: int
    compute_capability: tuple[int, int] | None = None
    has_native_bf16: bool
    has_kernels: bool = True  # False where the installed PyTorch was not built for this GPU
    ceilings: Ceilings | None = None  # only where somebody asked to measure them
    datasheet: Datasheet | None = None  # only of devices that are known


class DeviceSample(BaseModel):
    """What a device is busy with at one moment; None where it does not tell. Utilization is 0 to 100."""

    utilization_percent: float | None = None
    memory_used_bytes: int | None = None
    temperature_c: float | None = None
    power_w: float | None = None


class Hardware(BaseModel):
    """What one run had on each of its nodes: devices, one per rank or the ranks' one CPU, and the cores they shared."""

    model_config = ConfigDict(frozen=True)

    devices: list[DeviceFacts]
    num_cpu_cores: int
    num_nodes: int = 1  # hosts that had as much each


class HostFacts(BaseModel):
    """One worker host as its engine's `describe` reports it."""

    model_config = ConfigDict(frozen=True)

    hostname: str
    devices: list[DeviceFacts]
    num_cpu_cores: int
    has_compiler: bool
    has_torchao: bool = False  # the optional package that trains in fp8
    torch_version: str
    python_version: str
    cuda_version: str | None = None
    driver_version: str | None = None
    engine_version: str = ENGINE_VERSION

    def devices_of(self, kind: str) -> list[DeviceFacts]:
        """The host's devices of one kind."""
        return [device for device in self.devices if device.kind == kind]
