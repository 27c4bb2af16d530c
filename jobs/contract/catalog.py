"""The models and data sets that an engine knows by name, described without building or loading them."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from jobs.contract.messages import gettext_noop as _


class DataKind(StrEnum):
    """What a data set yields and a model takes."""

    IMAGES = "images"  # float image and class index
    TOKENS = "tokens"  # token sequence, predicted one ahead
    SEQUENCES = "sequences"  # token sequence and class index
    VECTORS = "vectors"  # a row of numbers


class Target(StrEnum):
    """What a data set asks a model to predict; the loss function follows from it."""

    CLASS = "class"  # one of several classes: cross-entropy
    NEXT_TOKEN = "next_token"  # noqa: S105 - the token that follows each one: cross-entropy
    VALUE = "value"  # a number: mean squared error


class Part(StrEnum):
    """What a model may be made of, as far as options are about it."""

    BLOCKS = "blocks"  # repeated ones, which the module names in its attribute `blocks`
    CONVOLUTIONS = "convolutions"
    BATCH_NORM = "batch_norm"
    ATTENTION = "attention"  # computed by `scaled_dot_product_attention`


class ModelInfo(BaseModel):
    """A model by name; `takes` says which data sets suit it: those that give one of these kinds.

    Its parts decide which options mean something for it. Where they are None nobody has listed them, and only the
    engine can tell, from the built model.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    description: str
    takes: list[DataKind]
    has_dropout: bool = False
    parts: list[Part] | None = None
    min_outputs: int | None = None  # of the last linear layer; where there are more classes, it has one for each
    image_size_multiple: int = 1  # a vision transformer cuts images into patches of this many pixels
    max_sequence_length: int | None = None

    def lacks(self, part: Part) -> bool:
        """Whether it is known to have no such part."""
        return self.parts is not None and part not in self.parts


class DatasetInfo(BaseModel):
    """A data set by name; the sample count is None where only loading it can tell.

    The own sizes are what it has where a spec leaves `image_size` and `sequence_length` open.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    description: str
    gives: DataKind
    target: Target = Target.CLASS
    num_train_samples: int | None = None
    num_classes: int | None = None  # labels of a classifier, the size of a vocabulary, or 1 where the target is a value
    image_size: int | None = None
    sequence_length: int | None = None
    unavailable: str = ""  # why this host cannot load it, as a sentence
    revision: str = ""  # of what a folder lists, where that can be told without reading it
    is_padded: bool = False  # sequences are filled up to one length, and attention must mask what fills them
    is_synthetic: bool = False  # made up: for throughput only, a loss on it means nothing


class Catalog(BaseModel):
    """Everything that can be named in a spec's `model` and `dataset`."""

    model_config = ConfigDict(frozen=True)

    models: list[ModelInfo]
    datasets: list[DatasetInfo]
    problems: list[str] = []  # a sentence for each plug-in, folder or hub data set that this host cannot offer

    def model(self, name: str) -> ModelInfo | None:
        """The model of that name, if there is one."""
        return next((info for info in self.models if info.name == name), None)

    def dataset(self, name: str) -> DatasetInfo | None:
        """The data set of that name, if there is one."""
        return next((info for info in self.datasets if info.name == name), None)

    def datasets_for(self, model: ModelInfo) -> list[DatasetInfo]:
        """The data sets that suit a model."""
        return [info for info in self.datasets if info.gives in model.takes]


BUILT_IN = Catalog(
    models=[
        ModelInfo(
            name="gpt-tiny",
            description=_("Transformer language model: 2 layers, width 128"),
            takes=[DataKind.TOKENS],
            has_dropout=True,
            parts=[Part.BLOCKS, Part.ATTENTION],
            min_outputs=0,
        ),
        ModelInfo(
            name="convnet",
            description=_("Small convolutional classifier"),
            takes=[DataKind.IMAGES],
            has_dropout=True,
            parts=[Part.CONVOLUTIONS],
            min_outputs=0,
        ),
        ModelInfo(
            name="mlp",
            description=_("Two-layer perceptron, for classes or for a value"),
            takes=[DataKind.IMAGES, DataKind.VECTORS],
            has_dropout=True,
            parts=[],
            min_outputs=0,
        ),
        ModelInfo(
            name="resnet18",
            description=_("ResNet-18: image classifier, 11.7 million parameters"),
            takes=[DataKind.IMAGES],
            parts=[Part.BLOCKS, Part.CONVOLUTIONS, Part.BATCH_NORM],
            min_outputs=0,
        ),
        ModelInfo(
            name="resnet50",
            description=_("ResNet-50: image classifier, 25.6 million parameters"),
            takes=[DataKind.IMAGES],
            parts=[Part.BLOCKS, Part.CONVOLUTIONS, Part.BATCH_NORM],
            min_outputs=0,
        ),
        ModelInfo(
            name="vit-b16",
            description=_("Vision transformer B/16: image classifier, 86.6 million parameters"),
            takes=[DataKind.IMAGES],
            has_dropout=True,
            image_size_multiple=16,
            parts=[Part.BLOCKS, Part.CONVOLUTIONS, Part.ATTENTION],
            min_outputs=0,
        ),
        ModelInfo(
            name="bert-base",
            description=_("BERT base: text classifier, 109.5 million parameters"),
            takes=[DataKind.SEQUENCES],
            has_dropout=True,
            max_sequence_length=512,
            parts=[Part.BLOCKS, Part.ATTENTION],
            min_outputs=0,
        ),
        ModelInfo(
            name="bert-large",
            description=_("BERT large: text classifier, 335.1 million parameters"),
            takes=[DataKind.SEQUENCES],
            has_dropout=True,
            max_sequence_length=512,
            parts=[Part.BLOCKS, Part.ATTENTION],
            min_outputs=0,
        ),
        ModelInfo(
            name="gpt2",
            description=_("GPT-2: language model, 124.4 million parameters"),
            takes=[DataKind.TOKENS],
            has_dropout=True,
            max_sequence_length=1024,
            parts=[Part.BLOCKS, Part.ATTENTION],
            min_outputs=50_257,
        ),
        ModelInfo(
            name="gpt2-medium",
            description=_("GPT-2 medium: language model, 354.8 million parameters"),
            takes=[DataKind.TOKENS],
            has_dropout=True,
            max_sequence_length=1024,
            parts=[Part.BLOCKS, Part.ATTENTION],
            min_outputs=50_257,
        ),
        ModelInfo(
            name="llama-160m",
            description=_("Llama of 162.4 million parameters: language model"),
            takes=[DataKind.TOKENS],
            max_sequence_length=2048,
            parts=[Part.BLOCKS, Part.ATTENTION],
            min_outputs=32_000,
        ),
    ],
    datasets=[
        DatasetInfo(
            name="stdlib-text",
            description=_("Python's own standard-library sources, as bytes"),
            gives=DataKind.TOKENS,
            target=Target.NEXT_TOKEN,
            num_classes=256,
            sequence_length=128,
        ),
        DatasetInfo(
            name="digits",
            description=_("1,797 handwritten digits of 8x8 pixels (scikit-learn)"),
            gives=DataKind.IMAGES,
            num_train_samples=1437,
            num_classes=10,
            image_size=8,
        ),
        DatasetInfo(
            name="diabetes",
            description=_("442 patients by 10 measurements; the progression of diabetes as a value (scikit-learn)"),
            gives=DataKind.VECTORS,
            target=Target.VALUE,
            num_train_samples=354,
            num_classes=1,
        ),
        DatasetInfo(
            name="breast-cancer",
            description=_("569 tumours by 30 measurements, benign or malignant (scikit-learn)"),
            gives=DataKind.VECTORS,
            num_train_samples=456,
            num_classes=2,
        ),
        DatasetInfo(
            name="wine",
            description=_("178 wines by 13 measurements, from three growers (scikit-learn)"),
            gives=DataKind.VECTORS,
            num_train_samples=143,
            num_classes=3,
        ),
        DatasetInfo(
            name="synthetic-images",
            description=_("Made-up images of 1,000 classes: throughput only"),
            gives=DataKind.IMAGES,
            num_train_samples=65_536,
            num_classes=1_000,
            image_size=224,
            is_synthetic=True,
        ),
        DatasetInfo(
            name="synthetic-tokens",
            description=_("Made-up text of 30,000 tokens: throughput only"),
            gives=DataKind.TOKENS,
            target=Target.NEXT_TOKEN,
            num_train_samples=65_536,
            num_classes=30_000,
            sequence_length=128,
            is_synthetic=True,
        ),
        DatasetInfo(
            name="synthetic-sequences",
            description=_("Made-up sequences of 30,000 tokens in two classes: throughput only"),
            gives=DataKind.SEQUENCES,
            num_train_samples=65_536,
            num_classes=2,
            sequence_length=128,
            is_synthetic=True,
        ),
    ],
)
