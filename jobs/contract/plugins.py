"""How a team's package offers its own model or data set to the engine: a description and where the code is.

An entry point in the group `pitwall.models` or `pitwall.datasets`, named as the model or data set, leads to one of
these records. The code itself is named as a text, `module:function`, so that listing what there is imports no torch.
"""

from pydantic import BaseModel, ConfigDict, Field

from jobs.contract.catalog import DatasetInfo, ModelInfo

_MODULE_AND_FUNCTION = r"^[\w.]+:\w+$"


class ModelPlugin(BaseModel):
    """A model. Its builder takes a `Dataset` and a share of dropout, and returns an `nn.Module` on the default device.

    The module takes what the data set's `take` gives as inputs; its outputs are (N, classes) for classes,
    (N, T, tokens) for next tokens and (N, 1) for a value. Repeated blocks, if any, stand in its attribute `blocks`.
    Where `info.parts` lists what the module is made of, the form can say what suits it before a job is queued.
    """

    model_config = ConfigDict(frozen=True)

    info: ModelInfo
    builder: str = Field(pattern=_MODULE_AND_FUNCTION)


class DatasetPlugin(BaseModel):
    """A data set. Its loader takes `Sizes` and returns a `Dataset`; it may raise `DataMissing` with a sentence."""

    model_config = ConfigDict(frozen=True)

    info: DatasetInfo
    loader: str = Field(pattern=_MODULE_AND_FUNCTION)
