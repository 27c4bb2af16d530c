"""What is measured after training and evaluation, where it can disturb neither figures nor results."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import optim

from jobs.contract.events import Warned
from jobs.contract.findings import Finding, Severity
from jobs.contract.messages import gettext_noop as _
from jobs.contract.spec import TrainSpec
from workers.engine.data.dataset import Batch, Dataset
from workers.engine.flops import FlopsUnknown, flops_per_sample, model_flops_utilization
from workers.engine.memory import memory_of
from workers.engine.peaks import peak_flops_per_s
from workers.engine.phases import MakeStep, measure_exposed_communication, measure_phases, store_phases
from workers.engine.report import Report
from workers.engine.step import LossFunction


@dataclass(frozen=True)
class TrainedStep:
    """The pieces of the step that was trained with, to put it together again with clocks in between."""

    make_step: MakeStep
    compute_loss: LossFunction
    batches: Iterator[Batch]
    optimizer: optim.Optimizer | None  # None for inference
    without_communication: Callable[[], AbstractContextManager[Any]] | None  # None for one rank


def measure_parts(trained: TrainedStep, spec: TrainSpec, device: torch.device, report: Report) -> None:
    """The parts of a step, in `spec.phase_steps` extra steps."""
    if not spec.phase_steps:
        return
    if spec.cuda_graph:
        report.emit(Warned(finding=_without_parts()))
        return
    compute_loss, batches = trained.compute_loss, trained.batches
    phases_ms = measure_phases(trained.make_step, compute_loss, batches, trained.optimizer, device, spec.phase_steps)
    store_phases(report.summary, phases_ms)
    if trained.without_communication is not None:
        step = trained.make_step(compute_loss, batches)
        report.summary.phase_communication_exposed_ms = measure_exposed_communication(
            step, trained.without_communication, device, spec.phase_steps
        )


def measure_flops(spec: TrainSpec, dataset: Dataset, report: Report) -> None:
    """FLOPs of a step, their rate, and MFU where the device's peak is known."""
    summary = report.summary
    try:
        per_sample = flops_per_sample(spec, dataset)
    except FlopsUnknown as error:
        report.emit(Warned(finding=_uncounted(error)))
        return
    summary.flops_per_step = per_sample * spec.global_batch_size
    if summary.samples_per_s is None:
        return
    summary.flops_per_s = per_sample * summary.samples_per_s
    peak = peak_flops_per_s(summary.device_name or "", spec.precision.value)
    if peak is not None:
        num_devices = spec.num_devices * spec.num_nodes
        summary.mfu = model_flops_utilization(per_sample, summary.samples_per_s, peak * num_devices)


def warn_of_needless_checkpointing(spec: TrainSpec, dataset: Dataset, device: torch.device, report: Report) -> None:
    """Warn of recomputation that this device's memory does not ask for."""
    if spec.activation_checkpointing:
        from workers.engine import estimate  # with tensors without memory, which few runs need

        for finding in estimate.tell_needless_checkpointing(spec, dataset, memory_of(device)):
            report.warn(finding)


def _without_parts() -> Finding:
    return Finding(
        code="no_parts_in_a_graph",
        field="phase_steps",
        severity=Severity.WARN,
        message=_("A whole step in one CUDA graph has no parts that could be timed; only its total is known."),
    )


def _uncounted(error: FlopsUnknown) -> Finding:
    return Finding(
        code="flops_unknown",
        field="model",
        severity=Severity.WARN,
        message=_("This model's FLOPs cannot be counted without running it (%(reason)s)."),
        params={"reason": str(error)},
    )
