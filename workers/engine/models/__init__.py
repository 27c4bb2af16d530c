"""Models by name. A family's file is imported only when a job names it: some take seconds to import."""

from collections.abc import Callable
from typing import cast

from torch import nn

from jobs.contract.errors import RefusedSpec
from jobs.contract.messages import gettext_noop as _
from jobs.contract.rules.table import refuse
from workers.engine.data.dataset import Dataset
from workers.engine.plugins import find_plugins, import_function

# name -> (module under this package, function that builds the model for a data set and a share of dropout)
BUILDERS = {
    "gpt-tiny": ("gpt", "build_gpt_tiny"),
    "convnet": ("convnet", "build_convnet"),
    "mlp": ("mlp", "build_mlp"),
    "resnet18": ("resnet", "build_resnet18"),
    "resnet50": ("resnet", "build_resnet50"),
    "vit-b16": ("vit", "build_vit_b16"),
    "bert-base": ("bert", "build_bert_base"),
    "bert-large": ("bert", "build_bert_large"),
    "gpt2": ("gpt2", "build_gpt2"),
    "gpt2-medium": ("gpt2", "build_gpt2_medium"),
    "llama-160m": ("llama", "build_llama_160m"),
}


def build_model(name: str, dataset: Dataset, dropout: float = 0.0) -> nn.Module:
    """A new model with fresh weights on torch's default device, sized for the data set's samples.

    Raises `RefusedSpec` where it needs a package that is not installed here.
    """
    try:
        build = cast(Callable[[Dataset, float], nn.Module], import_function(_find_builder(name)))
    except ModuleNotFoundError as error:
        message = _("%(model)s needs the package %(package)s on the worker: pip install %(package)s.")
        raise RefusedSpec([refuse("model", message, model=name, package=error.name)]) from error
    return build(dataset, dropout)


def _find_builder(name: str) -> str:
    if name not in BUILDERS:
        return find_plugins().models[name].builder
    module, function = BUILDERS[name]
    return f"{__name__}.{module}:{function}"


def blocks_of(model: nn.Module) -> list[nn.Module]:
    """The model's repeated blocks in the order of the forward pass; empty where it has none.

    What is done block by block (sharding, compiling, recomputing activations) is done to these, so each is called once
    in a forward pass and no block is inside another. A model names them in an attribute `blocks`, an iterable of
    modules. Takes the model as it was built, not as it was wrapped or compiled.
    """
    return list(getattr(model, "blocks", ()))
