"""Training linear layers in 8 bits with torchao, an optional extra."""

from torch import nn

from jobs.contract.errors import RefusedSpec
from jobs.contract.messages import gettext_noop as _
from jobs.contract.rules.parts import FP8_MULTIPLE
from jobs.contract.rules.table import refuse


def convert_to_fp8(model: nn.Module) -> nn.Module:
    """The model with every linear layer in fp8 (dynamic scaling, one scale per tensor).

    Raises `RefusedSpec` where a layer's sizes do not suit: converting only some would do less than was asked for.
    """
    for name, layer in model.named_modules():
        if isinstance(layer, nn.Linear) and (layer.in_features % FP8_MULTIPLE or layer.out_features % FP8_MULTIPLE):
            message = _("Layer %(name)s has %(inputs)s inputs and %(outputs)s outputs; fp8 needs multiples of 16.")
            sizes = {"inputs": layer.in_features, "outputs": layer.out_features}
            raise RefusedSpec([refuse("precision", message, name=name, **sizes)])
    from torchao.float8 import convert_to_float8_training  # optional; a rule has refused its absence

    converted: nn.Module = convert_to_float8_training(model)
    return converted
