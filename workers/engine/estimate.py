"""What a run would need, without running it: its steps are taken by tensors that have no memory.

A model is built, and one micro-batch goes forward and backward, on fake tensors: shapes, dtypes and lifetimes are
those of the real run, autocast and recomputation included; nothing is allocated or computed. The optimizer's share
follows from a step of the same optimizer over one parameter. What a compiler would save is not known before it ran.

On a CPU the figure is to be held against the growth of the process, which is more than its tensors: what imports bring
is measured here, and two constants stand for kernels' buffers and for the holes that the C library's allocator leaves
between tensors of changing sizes (with a fixed threshold for mapping memory there were none, but steps are slower).
"""

from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from jobs.contract.catalog import Catalog
from jobs.contract.choices import OptimizerImpl
from jobs.contract.estimates import Estimate
from jobs.contract.facts import HostFacts
from jobs.contract.findings import Finding
from jobs.contract.messages import gettext_noop as _
from jobs.contract.rules.table import warn
from jobs.contract.spec import DataLoading, DeviceKind, Parallelism, Task, TrainSpec
from workers.engine.blocks import checkpoint_activations
from workers.engine.catalog import read_catalog
from workers.engine.class_weights import build_criterion
from workers.engine.data import load_dataset
from workers.engine.data.dataset import Dataset, Sizes
from workers.engine.facts import read_host_facts
from workers.engine.flops import FlopsUnknown, flops_per_sample
from workers.engine.live_bytes import LiveBytes
from workers.engine.memory import read_rss
from workers.engine.models import blocks_of, build_model
from workers.engine.optimizers import build_optimizer
from workers.engine.precision import Arithmetic
from workers.engine.resolve import resolve

# Fitted to nine runs of seven models (benchmarks/README.md); the rest was exact to 1 MiB against real tensors.
_CPU_KERNELS_BYTES = 24 * 2**20
_CPU_HOLES_PER_ACTIVATION = 0.5
_FITS_SAFELY = 0.9  # of a device's memory: the rest is for what an estimate does not see
_PROBE_NUMEL = 2**20  # of the parameter that the optimizer is tried on: a step's own counters do not count beside it


@dataclass(frozen=True)
class _Pass:
    """Bytes of one micro-batch's forward and backward pass."""

    weights: int
    largest_parameter: int
    largest_block: int
    gradients: int
    activations: int
    peak_above_weights: int


@dataclass(frozen=True)
class _OptimizerShare:
    """An optimizer's bytes for each byte of parameters: what it keeps, and what a step holds beside that."""

    kept: float
    in_a_step: float


def estimate_here(asked: TrainSpec) -> Estimate:
    """`estimate` for this host."""
    return estimate(asked, read_host_facts(with_gpus=asked.device is not DeviceKind.CPU), read_catalog())


def estimate(asked: TrainSpec, facts: HostFacts, catalog: Catalog) -> Estimate:
    """Raises `RefusedSpec` where a rule refuses the spec on this host."""
    dataset = load_dataset(asked.dataset, Sizes.of(asked))
    spec = resolve(asked, facts, dataset, catalog)
    device = torch.device(spec.device.value)
    with torch.device("meta"):
        nn.Embedding(1, 1)  # imports what tensors without memory need, which a real run does not
        rss_bytes = read_rss()
        plain = build_model(spec.model, dataset)
    imported_bytes = read_rss() - rss_bytes
    seen = _pass_through(spec, dataset, device)
    share = _try_optimizer(spec, device) if spec.task is Task.TRAIN else _OptimizerShare(0, 0)
    dataset_bytes = _dataset_bytes(spec, dataset)
    overhead_bytes = _overhead(imported_bytes, seen) if device.type == "cpu" else 0
    memories = [each.memory_bytes for each in facts.devices_of(spec.device)]
    return Estimate(
        num_parameters=sum(parameter.numel() for parameter in plain.parameters()),
        flops_per_step=_flops_per_step(spec, dataset, plain),
        num_ranks=spec.num_ranks,
        num_nodes=spec.num_nodes,
        device_kind=spec.device,
        dataset_bytes=dataset_bytes,
        device_memory_bytes=min(memories, default=None),
        overhead_bytes=overhead_bytes,
        findings=tell_needless_checkpointing(spec, dataset, min(memories, default=None), imported_bytes),
        **_sizes_of_a_rank(spec, seen, share, dataset_bytes + overhead_bytes),
    )


def tell_needless_checkpointing(
    spec: TrainSpec, dataset: Dataset, device_memory_bytes: int | None, imported_bytes: int = 0
) -> list[Finding]:
    """A warning where activations are computed twice although keeping them would fit; `spec` is resolved.

    Says nothing where the model can only be run with values, or would need nearly all of the device's memory.
    """
    if not spec.activation_checkpointing or device_memory_bytes is None:
        return []
    device = torch.device(spec.device.value)
    keeping = spec.model_copy(update={"activation_checkpointing": False})
    try:
        seen = _pass_through(keeping, dataset, device)
    except (RuntimeError, NotImplementedError):
        return []
    overhead_bytes = _overhead(imported_bytes, seen) if device.type == "cpu" else 0
    beside_bytes = _dataset_bytes(spec, dataset) + overhead_bytes
    peak_bytes = _sizes_of_a_rank(keeping, seen, _try_optimizer(spec, device), beside_bytes)["peak_bytes"]
    num_sharing = spec.num_local_ranks if device.type == "cpu" else 1
    if peak_bytes * num_sharing > _FITS_SAFELY * device_memory_bytes:
        return []
    message = _("Without it a step needs about %(peak)s GiB of %(memory)s GiB: it fits, and computes nothing twice.")
    sizes = {"peak": peak_bytes * num_sharing, "memory": device_memory_bytes}
    return [warn("activation_checkpointing", message, **{name: f"{size / 2**30:.2f}" for name, size in sizes.items()})]


def _overhead(imported_bytes: int, seen: _Pass) -> int:
    return imported_bytes + _CPU_KERNELS_BYTES + round(_CPU_HOLES_PER_ACTIVATION * seen.activations)


def _sizes_of_a_rank(spec: TrainSpec, seen: _Pass, share: _OptimizerShare, beside_bytes: int) -> dict[str, int]:
    """Bytes by kind and their peak, which is in a pass or in the optimizer's step; `beside_bytes` are always there."""
    num_shards = spec.num_ranks if spec.parallelism is Parallelism.FSDP2 else 1
    weights, gradients = seen.weights // num_shards, seen.gradients // num_shards
    state = round(gradients * share.kept)
    # FSDP2 gathers the block that computes and the next one; DDP has buckets, unless they are the gradients.
    in_a_pass = seen.peak_above_weights - (seen.gradients - gradients)
    in_a_pass += 2 * seen.largest_block if num_shards > 1 else 0
    if spec.parallelism is Parallelism.DDP and not spec.ddp_gradient_as_bucket_view:
        in_a_pass += seen.gradients
    stepped_at_once = gradients if _steps_all_at_once(spec) else seen.largest_parameter // num_shards
    in_a_step = gradients + round(stepped_at_once * share.in_a_step)
    return {
        "weights_bytes": weights,
        "gradients_bytes": gradients,
        "optimizer_state_bytes": state,
        "activations_bytes": seen.activations,
        "peak_bytes": beside_bytes + weights + state + max(in_a_pass, in_a_step),
    }


def _steps_all_at_once(spec: TrainSpec) -> bool:
    """Whether the optimizer goes through all parameters in one call: torch's own choice on GPUs."""
    is_default = spec.optimizer_impl in (OptimizerImpl.DEFAULT, OptimizerImpl.CAPTURABLE)
    return spec.optimizer_impl is OptimizerImpl.FOREACH or (is_default and spec.device is DeviceKind.CUDA)


def _pass_through(spec: TrainSpec, dataset: Dataset, device: torch.device) -> _Pass:
    """Forward and backward over one micro-batch; forward alone for inference."""
    samples = dataset.train.take(torch.tensor([0]))  # real: what is faked below has no values
    criterion = build_criterion(spec.class_weights, dataset, device)
    arithmetic = Arithmetic.of(spec, device)
    with FakeTensorMode(allow_non_fake_inputs=True), LiveBytes() as live:
        with device:
            model = arithmetic.prepare(build_model(spec.model, dataset, spec.dropout))
        is_training = spec.task is Task.TRAIN
        model.train(is_training)
        if spec.activation_checkpointing:
            checkpoint_activations(model)
        parameters = list(model.parameters())
        weights = live.now
        if is_training and (spec.grad_accum_steps > 1 or not spec.zero_grad_set_to_none):
            for parameter in parameters:  # they are there already when the pass begins
                parameter.grad = torch.zeros_like(parameter)
        inputs, targets = (_micro_batch(part, spec.micro_batch_size, device) for part in samples)
        live.reset_peak()
        before = live.now
        with nullcontext() if is_training else torch.inference_mode():
            loss = criterion(arithmetic.build_forward(model)(inputs), targets)
        activations = live.now - before
        if is_training:
            loss.backward()  # type: ignore[no-untyped-call]
        return _Pass(
            weights=weights,
            largest_parameter=max(parameter.nbytes for parameter in parameters),
            largest_block=max(map(_num_bytes, blocks_of(model)), default=0),
            gradients=sum(parameter.nbytes for parameter in parameters) if is_training else 0,
            activations=activations,
            peak_above_weights=live.peak - weights,
        )


def _micro_batch(sample: Tensor, size: int, device: torch.device) -> Tensor:
    return torch.zeros((size, *sample.shape[1:]), dtype=sample.dtype, device=device)


def _num_bytes(module: nn.Module) -> int:
    return sum(parameter.nbytes for parameter in module.parameters())


def _try_optimizer(spec: TrainSpec, device: torch.device) -> _OptimizerShare:
    with FakeTensorMode(), LiveBytes() as live:
        probe = nn.Module()
        probe.weight = nn.Parameter(torch.empty(_PROBE_NUMEL, device=device))
        probe.weight.grad = torch.empty_like(probe.weight)
        before = live.now  # some make their state at once, others in their first step
        optimizer = build_optimizer(spec, probe)
        live.reset_peak()
        optimizer.step()
        size = probe.weight.nbytes
        return _OptimizerShare(kept=(live.now - before) / size, in_a_step=(live.peak - live.now) / size)


def _dataset_bytes(spec: TrainSpec, dataset: Dataset) -> int:
    if spec.data_loading is not DataLoading.ON_DEVICE:
        return 0
    split = dataset.train
    return split.samples.nbytes + (0 if split.labels is None else split.labels.nbytes)


def _flops_per_step(spec: TrainSpec, dataset: Dataset, model: nn.Module) -> float | None:
    try:
        return flops_per_sample(spec, dataset, model) * spec.global_batch_size
    except FlopsUnknown:
        return None
