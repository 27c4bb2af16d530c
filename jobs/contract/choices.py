"""The values that an option of a step's computation may take."""

from enum import StrEnum


class LrSchedule(StrEnum):
    """The learning rate's course after the warm-up."""

    CONSTANT = "constant"
    LINEAR = "linear"
    COSINE = "cosine"


class OptimizerImpl(StrEnum):
    """Which of PyTorch's implementations of an optimizer runs; `default` leaves it to PyTorch."""

    DEFAULT = "default"
    FOREACH = "foreach"
    FUSED = "fused"
    CAPTURABLE = "capturable"


class ClassWeights(StrEnum):
    """How much each class counts in the training loss."""

    NONE = "none"
    BALANCED = "balanced"


class CompileScope(StrEnum):
    """What torch.compile takes as one piece."""

    MODEL = "model"
    BLOCK = "block"


class SdpaBackend(StrEnum):
    """The kernel of scaled dot product attention."""

    AUTO = "auto"
    MATH = "math"
    FLASH = "flash"
    EFFICIENT = "efficient"
    CUDNN = "cudnn"


class DdpCommHook(StrEnum):
    """How DDP's gradients are compressed on their way."""

    NONE = "none"
    BF16 = "bf16"
    POWERSGD = "powersgd"
