"""Rules about options that are of a part which not every model has.

They speak where the catalog lists a model's parts; of a team's model without such a list the engine says the same,
once it is built.
"""

from collections.abc import Iterator

from jobs.contract.catalog import Part
from jobs.contract.choices import CompileScope, SdpaBackend
from jobs.contract.findings import Finding
from jobs.contract.messages import gettext_noop as _
from jobs.contract.rules.table import Situation, refuse, rule, warn
from jobs.contract.spec import CompileMode, Precision, TrainSpec

FP8_MULTIPLE = 16  # of both sizes of a matrix that a GPU's fp8 units multiply
NO_BLOCKS = _("This model has no repeated blocks to do this with.")
NOTHING_TO_CHANGE = _("This model has nothing that this option could change.")


def parts_changed(spec: TrainSpec) -> dict[str, Part]:
    """The options in use that change nothing but one part, and which part."""
    used = {
        "channels_last": (spec.channels_last, Part.CONVOLUTIONS),
        "cudnn_benchmark": (spec.cudnn_benchmark, Part.CONVOLUTIONS),
        "sync_batchnorm": (spec.sync_batchnorm, Part.BATCH_NORM),
        "sdpa_backend": (spec.sdpa_backend is not SdpaBackend.AUTO, Part.ATTENTION),
    }
    return {field: part for field, (is_used, part) in used.items() if is_used}


@rule
def blocks_to_do_it_with(at: Situation) -> Iterator[Finding]:
    """What is done block by block needs a model that is made of repeated blocks."""
    model = at.catalog.model(at.spec.model)
    if model is None or not model.lacks(Part.BLOCKS):
        return
    if at.spec.activation_checkpointing:
        yield refuse("activation_checkpointing", NO_BLOCKS)
    if at.spec.compile_scope is CompileScope.BLOCK and at.spec.compile_mode is not CompileMode.OFF:
        yield refuse("compile_scope", NO_BLOCKS)


@rule
def parts_to_change(at: Situation) -> Iterator[Finding]:
    """An option about convolutions, batch norm or attention does nothing in a model without any."""
    model = at.catalog.model(at.spec.model)
    for field, part in parts_changed(at.spec).items():
        if model is not None and model.lacks(part):
            yield warn(field, NOTHING_TO_CHANGE)


@rule
def masked_attention(at: Situation) -> Iterator[Finding]:
    """On a GPU the flash kernel takes no mask, which sequences that are filled up need."""
    model, dataset = at.catalog.model(at.spec.model), at.catalog.dataset(at.spec.dataset)
    if at.device_kind != "cuda" or at.spec.sdpa_backend is not SdpaBackend.FLASH or model is None or dataset is None:
        return
    if dataset.is_padded and model.parts is not None and Part.ATTENTION in model.parts:
        yield refuse(
            "sdpa_backend",
            _(
                "Sequences of %(dataset)s are filled up, and on a GPU flash attention cannot mask that. "
                "Choose efficient or auto."
            ),
            dataset=dataset.name,
        )


@rule
def fp8_outputs(at: Situation) -> Iterator[Finding]:
    """fp8 takes matrices of certain sizes only, and a last layer is as wide as there are classes or tokens."""
    model, dataset = at.catalog.model(at.spec.model), at.catalog.dataset(at.spec.dataset)
    if at.spec.precision is not Precision.FP8 or model is None or dataset is None:
        return
    if model.min_outputs is None or dataset.num_classes is None:
        return
    outputs = max(model.min_outputs, dataset.num_classes)
    if outputs % FP8_MULTIPLE:
        yield warn(
            "precision",
            _("The last layer of %(model)s stays in bf16: %(outputs)s outputs are no multiple of 16, which fp8 needs."),
            model=model.name,
            outputs=outputs,
        )
