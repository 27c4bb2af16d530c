"""All that the next step depends on, as plain values and tensors: what a checkpoint holds.

Weights, optimizer, scaler, schedule and every random stream. The place in the data follows from the number of steps
(`order.py`). Sharded models are gathered whole on rank 0, so that their file is read on any number of ranks.
"""

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn, optim

from workers.engine.parallel import Exchange, Rank
from workers.engine.update import Update

# What says how an optimizer computes, not what: a resumed run has its own.
_IMPLEMENTATION = ("foreach", "fused", "capturable", "differentiable")
PARTS = {"is_sharded", "model", "optimizer", "scaler", "scheduler", "random"}


def collect_state(model: nn.Module, update: Update, exchange: Exchange) -> dict[str, Any]:
    """The state of all ranks; complete on rank 0. Every rank must call it."""
    weights, optimizer_state = _collect_weights(model, update.optimizer)
    return {
        "is_sharded": is_sharded(model),
        "model": weights,
        "optimizer": optimizer_state,
        "scaler": update.scaler.state_dict() if update.scaler else None,
        "scheduler": update.scheduler.state_dict() if update.scheduler else None,
        "random": exchange.gather(collect_random_state()),
    }


def restore_state(state: Mapping[str, Any], model: nn.Module, update: Update, rank: Rank) -> None:
    """Put a state back, in place. Random streams are per rank; other numbers of ranks share them out anew."""
    if is_sharded(model):
        _restore_sharded(state, model, update.optimizer)
    else:
        model.load_state_dict(state["model"])
        _restore_optimizer(update.optimizer, state["optimizer"])
    if update.scaler and state["scaler"]:
        update.scaler.load_state_dict(state["scaler"])
    if update.scheduler and state["scheduler"]:
        update.scheduler.load_state_dict(state["scheduler"])
    restore_random_state(state["random"][rank.rank % len(state["random"])])


def is_sharded(model: nn.Module) -> bool:
    """Whether ranks hold parts of the weights."""
    if not dist.is_available() or not dist.is_initialized():
        return False
    from torch.distributed.tensor import DTensor  # a second to import, and only sharded runs have any

    return any(isinstance(parameter, DTensor) for parameter in model.parameters())


def _collect_weights(model: nn.Module, optimizer: optim.Optimizer) -> tuple[dict[str, Any], dict[str, Any]]:
    if not is_sharded(model):
        return model.state_dict(), optimizer.state_dict()
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict

    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    weights, optimizer_state = get_state_dict(model, optimizer, options=options)
    return weights, dict(optimizer_state)


def _restore_sharded(state: Mapping[str, Any], model: nn.Module, optimizer: optim.Optimizer) -> None:
    from torch.distributed.checkpoint.state_dict import StateDictOptions, set_state_dict

    options = StateDictOptions(full_state_dict=True)
    set_state_dict(
        model,
        optimizer,
        model_state_dict=state["model"],
        optim_state_dict=state["optimizer"],
        options=options,
    )


def _restore_optimizer(optimizer: optim.Optimizer, saved: dict[str, Any]) -> None:
    """Load moments and rates, and keep how this run computes: its implementation, and a rate that is a tensor."""
    own = [
        {name: group[name] for name in (*_IMPLEMENTATION, "lr") if name in group} for group in optimizer.param_groups
    ]
    optimizer.load_state_dict(saved)
    for group, kept in zip(optimizer.param_groups, own, strict=True):
        rate = group["lr"]
        group.update(kept)
        if isinstance(kept["lr"], torch.Tensor):
            kept["lr"].fill_(float(rate))
        else:
            group["lr"] = float(rate)


def collect_random_state() -> dict[str, Any]:
    """Python's, NumPy's and torch's generators as numbers and tensors, so that nothing else need be unpickled."""
    has_cuda = torch.cuda.is_available()
    version, numbers, gauss = random.getstate()
    name, keys, position, has_gauss, cached = np.random.get_state()
    return {
        "python": [version, list(numbers), gauss],
        "numpy": [str(name), torch.from_numpy(np.asarray(keys).astype(np.int64)), position, has_gauss, cached],
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state() if has_cuda else None,
    }


def restore_random_state(state: Mapping[str, Any]) -> None:
    """The inverse of `collect_random_state`."""
    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))
    name, keys, position, has_gauss, cached = state["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), position, has_gauss, cached))
    torch.set_rng_state(state["torch"])
    if state["cuda"] is not None and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])
