"""The arithmetic of a step: what fp32 means, autocast, and loss scaling."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from jobs.contract.spec import Parallelism, Precision, TrainSpec
from workers.engine.fp8 import convert_to_fp8

_AUTOCAST = {
    Precision.FP16_MIXED: torch.float16,
    Precision.BF16_MIXED: torch.bfloat16,
    Precision.FP8: torch.bfloat16,  # of what is not a linear layer, and of their outputs
}
_STORED = {Precision.FP16_TRUE: torch.float16, Precision.BF16_TRUE: torch.bfloat16}

Forward = Callable[[Tensor], Tensor]  # inputs of a batch to outputs in float32


def apply_precision(precision: Precision, device: torch.device) -> str:
    """Say what a product of float32 matrices means, in matrix products and convolutions alike; returns what is read
    back, "ieee" or "tf32".

    Convolutions default to TF32 on GPUs. Legacy setters only: after the new `fp32_precision` ones the legacy reads
    raise, and Inductor still reads those.
    """
    tf32 = precision is Precision.TF32
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    if device.type == "cuda":
        torch.backends.cudnn.allow_tf32 = tf32
        if torch.backends.cudnn.allow_tf32 is not tf32:
            raise RuntimeError("cuDNN did not take the setting of TF32.")
    return "tf32" if torch.get_float32_matmul_precision() == "high" else "ieee"


@dataclass(frozen=True)
class Arithmetic:
    """What a forward pass computes in. None of both means float32."""

    stored: torch.dtype | None  # of weights and of inputs that are not indices
    autocast: torch.autocast | None
    uses_fp8: bool = False
    channels_last: bool = False

    @classmethod
    def of(cls, spec: TrainSpec, device: torch.device) -> "Arithmetic":
        """The arithmetic that a spec asks for."""
        dtype = _AUTOCAST.get(spec.precision)
        if spec.parallelism is Parallelism.FSDP2 and spec.precision is not Precision.FP8:
            dtype = None  # FSDP's own policy gathers the weights in 16 bits, see fsdp.py
        # A recorded step must cast its weights anew at every replay.
        autocast = (
            None if dtype is None else torch.autocast(device.type, dtype=dtype, cache_enabled=not spec.cuda_graph)
        )
        return cls(_STORED.get(spec.precision), autocast, spec.precision is Precision.FP8, spec.channels_last)

    def prepare(self, model: nn.Module) -> nn.Module:
        """The model with its weights and buffers as they are stored, and its layers as they compute."""
        if self.channels_last:
            model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        if self.uses_fp8:
            return convert_to_fp8(model)
        return model if self.stored is None else model.to(self.stored)

    def build_forward(self, module: nn.Module) -> Forward:
        """A forward pass through `module`, which may be wrapped or compiled; its outputs go on as float32."""
        if self.channels_last:
            module = _WithChannelsLast(module)
        stored, autocast = self.stored, self.autocast
        if autocast is not None:

            def autocasted(inputs: Tensor) -> Tensor:
                with autocast:
                    outputs: Tensor = module(inputs)
                return outputs.float()

            return autocasted
        if stored is None:
            return module

        def in_stored_dtype(inputs: Tensor) -> Tensor:
            outputs: Tensor = module(inputs.to(stored) if inputs.is_floating_point() else inputs)
            return outputs.float()

        return in_stored_dtype


class _WithChannelsLast(nn.Module):
    """Images go in with their channels innermost; everything else as it is."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, inputs: Tensor) -> Tensor:
        """(N, C, H, W) or any other shape to the module's outputs."""
        if inputs.dim() == 4:
            inputs = inputs.contiguous(memory_format=torch.channels_last)
        outputs: Tensor = self.module(inputs)
        return outputs


_TORCHS_INITIAL_SCALE = 65536.0


def build_scaler(spec: TrainSpec, device: torch.device) -> torch.amp.GradScaler | None:
    """Keeps small gradients of fp16-mixed above zero. None elsewhere: on fp16 weights a scaler raises."""
    if spec.precision is not Precision.FP16_MIXED:
        return None
    return torch.amp.GradScaler(device.type, init_scale=spec.initial_loss_scale or _TORCHS_INITIAL_SCALE)
