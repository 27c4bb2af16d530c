"""Who holds memory during training, as far as it is known by name."""

from collections.abc import Iterable

from torch import Tensor, nn, optim
from torch.distributed.tensor import DTensor

from workers.engine.data.dataset import Split


def list_consumers(model: nn.Module, optimizer: optim.Optimizer | None, split: Split) -> dict[str, int]:
    """Bytes by name: weights, gradients, optimizer state and the training split; this rank's share of each."""
    parameters = list(model.parameters())
    states = (value for state in (optimizer.state.values() if optimizer else ()) for value in state.values())
    return {
        "weights": _num_bytes([*parameters, *model.buffers()]),
        "gradients": _num_bytes(parameter.grad for parameter in parameters if parameter.grad is not None),
        "optimizer state": _num_bytes(value for value in states if isinstance(value, Tensor)),
        "data set": _num_bytes(tensor for tensor in (split.samples, split.labels) if tensor is not None),
    }


def _num_bytes(tensors: Iterable[Tensor]) -> int:
    """Of a sharded tensor only the part that is here."""
    return sum(tensor.to_local().nbytes if isinstance(tensor, DTensor) else tensor.nbytes for tensor in tensors)
