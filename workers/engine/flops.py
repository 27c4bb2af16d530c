"""Model FLOPs of a step, counted once on tensors without memory.

On the meta device nothing is computed and nothing allocated, and operations appear in their plain form: attention is
two batched matrix products, so it is counted (on a CPU `FlopCounterMode` leaves it out), an LSTM is its linear layers
(on a device it counts 0), and there is neither recomputation nor a compiler. Convention: a multiplication and an
addition are two FLOPs; a causal mask saves none, as in PaLM's 12 x layers x heads x head_dim x sequence per token.
"""

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from jobs.contract.spec import Task, TrainSpec
from workers.engine.data.dataset import Dataset, Split
from workers.engine.models import build_model


class FlopsUnknown(Exception):
    """A model's FLOPs cannot be counted without running it; the text is torch's reason, in a line."""


def flops_per_sample(spec: TrainSpec, dataset: Dataset, model: nn.Module | None = None) -> float:
    """FLOPs of one sample in a step of the spec; a `model` that is on the meta device already is not built again.

    Raises `FlopsUnknown`: what a model may do on meta tensors has limits.
    """
    try:
        if model is None:
            with torch.device("meta"):
                model = build_model(spec.model, dataset)
        return count_flops_per_sample(model, dataset.train, with_backward=spec.task is Task.TRAIN)
    except (RuntimeError, NotImplementedError) as error:
        raise FlopsUnknown(str(error).strip().partition("\n")[0]) from error


def count_flops_per_sample(model: nn.Module, split: Split, *, with_backward: bool) -> float:
    """FLOPs of one sample's pass through a model on the meta device, forward or forward and backward.

    Raises what the model raises where its operations depend on values, which meta tensors do not have.
    """
    sample, _target = split.take(torch.zeros(1, dtype=torch.long, device=split.samples.device))
    inputs = torch.empty((2, *sample.shape[1:]), dtype=sample.dtype, device="meta")  # batch norm wants two
    model.train(with_backward)
    with FlopCounterMode(display=False) as counter, torch.set_grad_enabled(with_backward):
        outputs = model(inputs)
        if with_backward:
            outputs.float().sum().backward()
    return float(counter.get_total_flops()) / len(inputs)


def transformer_flops_per_token(
    num_matmul_parameters: int, num_layers: int, num_heads: int, head_dim: int, sequence: int
) -> int:
    """Forward and backward by the usual formula, PaLM (arXiv:2204.02311), appendix B; the independent way."""
    return 6 * num_matmul_parameters + 12 * num_layers * num_heads * head_dim * sequence


def model_flops_utilization(flops_per_sample: float, samples_per_s: float, peak_flops_per_s: float) -> float:
    """Fraction of the peak (0 to 1) spent on model FLOPs; PaLM, arXiv:2204.02311, appendix B.

    Rates are summed over all ranks. Raises ValueError if the peak is not positive.
    """
    if peak_flops_per_s <= 0:
        raise ValueError("a peak must be positive")
    return flops_per_sample * samples_per_s / peak_flops_per_s
