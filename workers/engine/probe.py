"""What a forward pass really does, seen in a probe on two samples: a setting proves nothing."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from jobs.contract.catalog import Part
from jobs.contract.messages import gettext_noop as _
from jobs.contract.rules.parts import NOTHING_TO_CHANGE, parts_changed
from jobs.contract.rules.table import warn
from jobs.contract.spec import Precision, TrainSpec
from workers.engine.data.dataset import Split
from workers.engine.fp8 import layers_beside_fp8
from workers.engine.fsdp import forget_forward
from workers.engine.models import blocks_of
from workers.engine.precision import Forward
from workers.engine.report import Report

_BESIDE_FP8 = _("Linear layers that stay in bf16, because fp8 needs sizes that are multiples of 16: %(names)s.")
_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_MATMUL_MODULES = (nn.Linear, *_CONVOLUTIONS)
_KERNELS = {
    "aten::_scaled_dot_product_flash_attention": "flash",
    "aten::_scaled_dot_product_flash_attention_for_cpu": "flash",
    "aten::_scaled_dot_product_efficient_attention": "efficient",
    "aten::_scaled_dot_product_cudnn_attention": "cudnn",
}


@dataclass(frozen=True)
class Observed:
    """The dtype of the first matrix product's or convolution's output and attention's kernel; None without one."""

    dtype: str | None
    attention_kernel: str | None


class _Functions(TorchFunctionMode):
    """The functions of torch that are called."""

    def __init__(self) -> None:
        super().__init__()
        self.called: set[Any] = set()

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.called.add(func)
        return func(*args, **(kwargs or {}))


class _Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """The names of all operators that run."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: set[str] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.names.add(func._schema.name)
        return func(*args, **(kwargs or {}))


def observe(model: nn.Module, forward: Forward, split: Split, device: torch.device) -> Observed:
    """Look at one pass through a model that is not compiled yet; all ranks of a sharded model must do so together."""
    layer = next((module for module in model.modules() if isinstance(module, _MATMUL_MODULES)), None)
    seen: list[torch.dtype] = []
    hook = layer.register_forward_hook(lambda _module, _inputs, output: seen.append(output.dtype)) if layer else None
    inputs, _targets = split.take(torch.tensor([0, min(1, len(split) - 1)]))
    model.eval()
    with torch.no_grad(), _Functions() as functions, _Operators() as operators:
        forward(inputs.to(device))
    model.train()
    forget_forward(model)
    if hook is not None:
        hook.remove()
    dtype = str(seen[0]).removeprefix("torch.") if seen else None
    return Observed(dtype, _attention_kernel(operators.names, functions.called))


def _attention_kernel(operators: set[str], functions: set[Any]) -> str | None:
    kernels = sorted({kernel for name, kernel in _KERNELS.items() if name in operators})
    if kernels:
        return ", ".join(kernels)
    # The kernel named math is no operator of its own: attention was asked for, and none of the others ran.
    return "math" if functional.scaled_dot_product_attention in functions else None


def parts_of(model: nn.Module, seen: Observed) -> list[Part]:
    """What the built model is really made of, whatever a catalog says."""

    def has(kinds: type | tuple[type, ...]) -> bool:
        return any(isinstance(module, kinds) for module in model.modules())

    found = {
        Part.BLOCKS: bool(blocks_of(model)),
        Part.CONVOLUTIONS: has(_CONVOLUTIONS),
        Part.BATCH_NORM: has(_BatchNorm),
        Part.ATTENTION: seen.attention_kernel is not None,
    }
    return [part for part, is_there in found.items() if is_there]


def tell_what_did_nothing(spec: TrainSpec, model: nn.Module, seen: Observed, report: Report) -> None:
    """Warn of each option that this model gives nothing to do, where a rule has not said so yet."""
    parts = parts_of(model, seen)
    for field, part in parts_changed(spec).items():
        if part not in parts:
            report.warn(warn(field, NOTHING_TO_CHANGE))
    if spec.precision is Precision.FP8 and (names := layers_beside_fp8(model)):
        report.warn(warn("precision", _BESIDE_FP8, names=", ".join(names)))
