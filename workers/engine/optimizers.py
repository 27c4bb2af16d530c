"""Optimizers and learning rate schedules by the spec's names, with torch's defaults for what the spec does not say."""

import math
from functools import partial
from typing import Any

import torch
from torch import nn, optim

from jobs.contract.choices import LrSchedule, OptimizerImpl
from jobs.contract.rules.optimization import WITH_CAPTURABLE
from jobs.contract.spec import Optimizer, TrainSpec

_ALGORITHMS: dict[Optimizer, type[optim.Optimizer]] = {
    Optimizer.SGD: optim.SGD,
    Optimizer.ADAM: optim.Adam,
    Optimizer.ADAMW: optim.AdamW,
    Optimizer.RMSPROP: optim.RMSprop,
    Optimizer.ADAGRAD: optim.Adagrad,
}
DEFAULT_WEIGHT_DECAY = {Optimizer.ADAMW: 0.01}  # torch's; 0 for the others
# What each implementation asks of the constructor; none of it for `default`, which is torch's own choice.
_IMPLEMENTATIONS: dict[OptimizerImpl, dict[str, bool]] = {
    OptimizerImpl.DEFAULT: {},
    OptimizerImpl.FOREACH: {"foreach": True},
    OptimizerImpl.FUSED: {"fused": True},
    OptimizerImpl.CAPTURABLE: {"capturable": True},
}


def decide_weight_decay(spec: TrainSpec) -> float:
    """The weight decay that a spec means."""
    return DEFAULT_WEIGHT_DECAY.get(spec.optimizer, 0.0) if spec.weight_decay is None else spec.weight_decay


def build_optimizer(spec: TrainSpec, model: nn.Module) -> optim.Optimizer:
    """The spec's optimizer over all parameters."""
    keywords: dict[str, Any] = {"lr": spec.learning_rate, "weight_decay": decide_weight_decay(spec)}
    keywords |= _IMPLEMENTATIONS[spec.optimizer_impl]
    if spec.cuda_graph:
        keywords |= _for_recording(spec, model)
    if spec.momentum > 0:  # refused for algorithms that have none
        keywords["momentum"] = spec.momentum
    return _ALGORITHMS[spec.optimizer](model.parameters(), **keywords)


def _for_recording(spec: TrainSpec, model: nn.Module) -> dict[str, Any]:
    """A number would be recorded as it is, so the learning rate is a tensor; fused Adam must be capturable as well."""
    rate = torch.tensor(spec.learning_rate, device=next(model.parameters()).device)
    return {"lr": rate, "capturable": True} if spec.optimizer in WITH_CAPTURABLE else {"lr": rate}


def build_scheduler(spec: TrainSpec, optimizer: optim.Optimizer) -> optim.lr_scheduler.LambdaLR | None:
    """Sets the learning rate of the next step each time it is stepped; None where the rate never changes."""
    if spec.lr_schedule is LrSchedule.CONSTANT and spec.warmup_steps == 0:
        return None
    assert spec.num_steps is not None  # noqa: S101 - resolved long before
    factor = partial(
        learning_rate_factor, schedule=spec.lr_schedule, num_steps=spec.num_steps, warmup_steps=spec.warmup_steps
    )
    return optim.lr_scheduler.LambdaLR(optimizer, factor)


def learning_rate_factor(num_done: int, *, schedule: LrSchedule, num_steps: int, warmup_steps: int) -> float:
    """What the learning rate is multiplied with for the step after `num_done` steps, 0 to 1.

    It rises in `warmup_steps` equal pieces, is 1 at the end of the warm-up and would be 0 one step after the last.
    """
    if num_done < warmup_steps:
        return (num_done + 1) / warmup_steps
    if schedule is LrSchedule.CONSTANT:
        return 1.0
    progress = min(1.0, (num_done - warmup_steps) / (num_steps - warmup_steps))
    if schedule is LrSchedule.LINEAR:
        return 1.0 - progress
    return 0.5 * (1.0 + math.cos(math.pi * progress))


def current_learning_rate(optimizer: optim.Optimizer) -> float:
    """The rate that the next step takes; reads from the device where it is kept there."""
    rate = optimizer.param_groups[0]["lr"]
    return rate.item() if isinstance(rate, torch.Tensor) else float(rate)
