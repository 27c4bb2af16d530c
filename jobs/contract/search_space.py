"""What a search may vary without changing the work: axes, each a list of changes of which the first changes nothing."""

from collections.abc import Mapping
from typing import Any

from jobs.contract.messages import gettext_noop as _
from jobs.contract.spec import TrainSpec

Changes = Mapping[str, Any]

AXIS_TITLES = {
    "precision": _("Precision"),
    "compile": _("Compilation"),
    "optimizer": _("Optimizer implementation"),
    "batch": _("Micro-batches of the same global batch"),
    "loading": _("Data loading"),
    "threads": _("CPU threads"),
    "channels_last": _("Channels last"),
    "cudnn_benchmark": _("cuDNN benchmark"),
    "cuda_graph": _("CUDA graph"),
    "checkpointing": _("Activation checkpointing"),
}

_LOADER = {"data_loading": "dataloader"}
_AXES: dict[str, list[Changes]] = {
    "precision": [{"precision": value} for value in ("fp32", "tf32", "bf16-mixed", "fp16-mixed")],
    "compile": [{"compile_mode": value} for value in ("off", "default", "max-autotune-no-cudagraphs")],
    "optimizer": [{"optimizer_impl": value} for value in ("default", "foreach", "fused")],
    "loading": [{"data_loading": "on-device", "num_workers": 0}, _LOADER, _LOADER | {"num_workers": 2}],
    "threads": [{"num_threads": value} for value in (None, 1, 2)],
    "channels_last": [{"channels_last": value} for value in (False, True)],
    "cudnn_benchmark": [{"cudnn_benchmark": value} for value in (False, True)],
    "cuda_graph": [{"cuda_graph": value} for value in (False, True)],
    "checkpointing": [{"activation_checkpointing": value} for value in (False, True)],
}
_SPLITS = (1, 2, 4, 8)  # micro-batches of a global batch


def axes_of(spec: TrainSpec) -> dict[str, list[Changes]]:
    """Every axis by its name; what a value leaves as the spec has it is no change, and the spec's own comes first."""
    found = {name: _axis(spec, values) for name, values in (_AXES | {"batch": _batches(spec)}).items()}
    return {name: found[name] for name in AXIS_TITLES if len(found[name]) > 1}


def _batches(spec: TrainSpec) -> list[Changes]:
    size = spec.micro_batch_size * spec.grad_accum_steps
    return [{"micro_batch_size": size // split, "grad_accum_steps": split} for split in _SPLITS if size % split == 0]


def _axis(spec: TrainSpec, values: list[Changes]) -> list[Changes]:
    """The spec's own value first, whatever it is; then each that differs from it, once."""
    asked = spec.model_dump(mode="json")
    differing = [{name: value for name, value in changes.items() if asked[name] != value} for changes in values]
    unique = {str(changes): changes for changes in differing if changes}
    return [{}, *unique.values()]
