"""Training linear layers in 8 bits with torchao, an optional extra."""

from torch import nn

from jobs.contract.errors import RefusedSpec
from jobs.contract.messages import gettext_noop as _
from jobs.contract.rules.parts import FP8_MULTIPLE
from jobs.contract.rules.table import refuse


def convert_to_fp8(model: nn.Module) -> nn.Module:
    """The model with every linear layer of fitting sizes in fp8 (dynamic scaling, one scale per tensor).

    Which layers stay as they were `layers_beside_fp8` tells. Raises `RefusedSpec` where none fits.
    """
    if not any(isinstance(layer, nn.Linear) and _fits(layer) for layer in model.modules()):
        message = _("No linear layer of this model has sizes that are multiples of 16, which fp8 needs.")
        raise RefusedSpec([refuse("precision", message)])
    from torchao.float8 import convert_to_float8_training  # optional; a rule has refused its absence

    converted: nn.Module = convert_to_float8_training(model, module_filter_fn=lambda layer, _name: _fits(layer))
    return converted


def layers_beside_fp8(model: nn.Module) -> list[str]:
    """The names of linear layers that fp8's units cannot multiply, most often the last one alone."""
    return [name for name, layer in model.named_modules() if isinstance(layer, nn.Linear) and not _fits(layer)]


def _fits(layer: nn.Linear) -> bool:
    return layer.in_features % FP8_MULTIPLE == 0 and layer.out_features % FP8_MULTIPLE == 0
