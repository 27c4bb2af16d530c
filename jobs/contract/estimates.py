"""What a run would need, told before it runs."""

from pydantic import BaseModel, ConfigDict

from jobs.contract.findings import Finding


class Estimate(BaseModel):
    """Sizes in bytes are of one rank. `peak_bytes` is the most that lives at once, so it is no sum of the others."""

    model_config = ConfigDict(frozen=True)

    num_parameters: int  # of the whole model
    flops_per_step: float | None  # of the global batch; None where they cannot be counted without running the model
    num_ranks: int
    num_nodes: int = 1
    device_kind: str  # "cpu" or "cuda"
    weights_bytes: int
    gradients_bytes: int
    optimizer_state_bytes: int
    activations_bytes: int  # what the forward pass keeps for the backward pass
    dataset_bytes: int  # of the training split where it lies on the device
    overhead_bytes: int  # of the process beside its tensors; 0 on a GPU
    peak_bytes: int  # on a GPU to be held against `peak_allocated_bytes`, on a CPU against the growth of the process
    device_memory_bytes: int | None  # what the smallest of the devices has
    findings: list[Finding] = []  # what only these figures tell

    @property
    def gflop_per_step(self) -> float | None:
        """Thousand million floating-point operations of one step."""
        return None if self.flops_per_step is None else self.flops_per_step / 1e9

    @property
    def fits(self) -> bool | None:
        """Whether the peak is within the device's memory; a host's memory is shared by all ranks. None if unknown."""
        if self.device_memory_bytes is None:
            return None
        num_sharing = self.num_ranks // self.num_nodes if self.device_kind == "cpu" else 1
        return self.peak_bytes * num_sharing <= self.device_memory_bytes
