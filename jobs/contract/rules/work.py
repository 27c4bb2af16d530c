"""Rules about sizes, dropout and made-up data: what suits the model and the data set of a job."""

from collections.abc import Iterator

from jobs.contract.catalog import DataKind
from jobs.contract.findings import Finding
from jobs.contract.messages import gettext_noop as _
from jobs.contract.options import Group, Role, metadata
from jobs.contract.rules.table import Situation, refuse, rule, warn
from jobs.contract.spec import Parallelism, Task, TrainSpec

# Beside the whole group of the optimizer: what has a meaning only where weights are trained.
_OF_TRAINING = (
    "grad_accum_steps",
    "drop_last",
    "dropout",
    "initial_loss_scale",
    "checkpoint_every_steps",
    "cuda_graph",
    "activation_checkpointing",
    "ddp_bucket_cap_mb",
    "ddp_gradient_as_bucket_view",
    "ddp_static_graph",
    "ddp_find_unused_parameters",
    "ddp_comm_hook",
    "sync_batchnorm",
)
_WITH_TOKENS = (DataKind.TOKENS, DataKind.SEQUENCES)


@rule
def sizes_suit_dataset(at: Situation) -> Iterator[Finding]:
    """A size is given only where the data set has it."""
    dataset = at.catalog.dataset(at.spec.dataset)
    if dataset is None:
        return
    if at.spec.image_size is not None and dataset.gives is not DataKind.IMAGES:
        yield refuse("image_size", _("%(dataset)s has no images."), dataset=dataset.name)
    if at.spec.sequence_length is not None and dataset.gives not in _WITH_TOKENS:
        yield refuse("sequence_length", _("%(dataset)s has no sequences of tokens."), dataset=dataset.name)


@rule
def sizes_suit_model(at: Situation) -> Iterator[Finding]:
    """Patches must fill an image, and a model with learned positions has only so many."""
    model, dataset = at.catalog.model(at.spec.model), at.catalog.dataset(at.spec.dataset)
    if model is None or dataset is None or dataset.gives not in model.takes:
        return
    image_size = at.spec.image_size or dataset.image_size
    if image_size is not None and image_size % model.image_size_multiple:
        yield refuse(
            "image_size",
            _("%(model)s takes images whose size is a multiple of %(multiple)s; these have %(size)s pixels."),
            model=model.name,
            multiple=model.image_size_multiple,
            size=image_size,
        )
    length = at.spec.sequence_length or dataset.sequence_length
    if length is not None and model.max_sequence_length is not None and length > model.max_sequence_length:
        yield refuse(
            "sequence_length",
            _("%(model)s takes at most %(most)s tokens at once; these sequences have %(length)s."),
            model=model.name,
            most=model.max_sequence_length,
            length=length,
        )


@rule
def dropout_has_a_place(at: Situation) -> Iterator[Finding]:
    """Some models have no dropout; compiled and eager dropout draw different zeros, so such runs do not pair."""
    model = at.catalog.model(at.spec.model)
    if at.spec.dropout and model is not None and not model.has_dropout:
        yield refuse("dropout", _("%(model)s has no dropout. Set it to 0."), model=model.name)
    elif at.spec.dropout:
        yield warn(
            "dropout", _("With dropout, runs of one seed differ between devices and between compiled and eager.")
        )


@rule
def weights_from_the_device(at: Situation) -> Iterator[Finding]:
    """A GPU draws other random numbers than the CPU from the same seed; on a CPU there is nowhere else to build."""
    if at.spec.build_on_device and at.device_kind == "cpu":
        yield refuse("build_on_device", _("The weights are made in the CPU's memory anyway; this job runs there."))
    if at.spec.build_on_device and at.device_kind == "cuda":
        yield warn(
            "build_on_device",
            _("Weights that a GPU makes differ from the CPU's for the same seed: such runs do not pair by seed."),
        )


@rule
def data_are_there(at: Situation) -> Iterator[Finding]:
    """A host may know a data set that it cannot load: for want of a package, or of the network."""
    dataset = at.catalog.dataset(at.spec.dataset)
    if dataset is not None and dataset.unavailable:
        yield refuse("dataset", "%(reason)s", reason=dataset.unavailable)


@rule
def synthetic_data(at: Situation) -> Iterator[Finding]:
    """Made-up data measure speed and memory; a loss on them would look like a result."""
    dataset = at.catalog.dataset(at.spec.dataset)
    if dataset is not None and dataset.is_synthetic:
        yield warn(
            "dataset", _("%(dataset)s is made up: the run measures speed and shows no loss."), dataset=dataset.name
        )


@rule
def inference_trains_nothing(at: Situation) -> Iterator[Finding]:
    """Forward passes have no optimizer; each rank makes its own, so only copies of the model make sense."""
    if at.spec.task is not Task.INFERENCE:
        return
    for name, info in TrainSpec.model_fields.items():
        about = metadata(info)
        of_optimizer = about["group"] == Group.OPTIMIZATION.value and about["role"] != Role.PAIRING.value
        if (of_optimizer or name in _OF_TRAINING) and getattr(at.spec, name) != info.default:
            yield refuse(name, _("An inference job trains nothing; leave this option as it comes."))
    if at.spec.parallelism not in (Parallelism.NONE, Parallelism.DDP):
        yield refuse("parallelism", _("An inference job has a whole model on each device: choose none or ddp."))
