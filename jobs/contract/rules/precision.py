"""Rules about the arithmetic of a step."""

from collections.abc import Iterator

from jobs.contract.findings import Finding
from jobs.contract.messages import gettext_noop as _
from jobs.contract.rules.table import Situation, refuse, rule, warn
from jobs.contract.spec import CompileMode, Parallelism, Precision

_BF16 = (Precision.BF16_MIXED, Precision.BF16_TRUE)
_FP16 = (Precision.FP16_MIXED, Precision.FP16_TRUE)
_FIRST_WITH_TF32 = (8, 0)  # Ampere
_FIRST_WITH_FP8 = (8, 9)  # Ada
_GEFORCE_WITHOUT_TF32_GAIN = ((8, 6), (8, 9))  # Ampere and Ada


@rule
def bf16_hardware(at: Situation) -> Iterator[Finding]:
    """bfloat16 runs everywhere, but only some hardware computes in it."""
    if at.spec.precision not in _BF16:
        return
    for device in at.devices[:1]:
        if not device.has_native_bf16:
            yield warn(
                "precision",
                _("%(name)s emulates bfloat16: the loss is right, but it may be slower than fp32."),
                name=device.name,
            )


@rule
def fp16_on_cpu(at: Situation) -> Iterator[Finding]:
    """CPUs compute in fp16 for the sake of completeness."""
    if at.spec.precision in _FP16 and at.device_kind == "cpu":
        yield warn("precision", _("fp16 on a CPU is right, but slower than fp32. Choose bf16-mixed or fp32."))


@rule
def sixteen_bit_weights(at: Situation) -> Iterator[Finding]:
    """An update much smaller than its weight is rounded away where the weight has few digits."""
    if at.spec.precision is Precision.BF16_TRUE:
        yield warn(
            "precision",
            _("Weights in bfloat16 lose small updates: 100 steps of 0.001 from 1.0 leave exactly 1.0."),
        )
    if at.spec.precision is Precision.FP16_TRUE:
        yield warn(
            "precision",
            _("Weights and gradients in fp16 lose small updates, overflow beyond 65,504 and have no gradient scaler."),
        )


@rule
def tf32_hardware(at: Situation) -> Iterator[Finding]:
    """TF32 is a mode of Ampere's matrix units and later ones."""
    if at.spec.precision is not Precision.TF32:
        return
    if at.device_kind == "cpu":
        yield refuse("precision", _("tf32 is a mode of NVIDIA GPUs; this job runs on the CPU. Choose fp32."))
        return
    for device in at.devices[:1]:
        capability = device.compute_capability
        if capability is not None and capability < _FIRST_WITH_TF32:
            yield refuse(
                "precision",
                _("%(name)s has no tf32; it came with compute capability 8.0. Choose fp32."),
                name=device.name,
            )
        elif "GeForce" in device.name and capability in _GEFORCE_WITHOUT_TF32_GAIN:
            yield warn("precision", _("On %(name)s tf32 has the same peak as fp32."), name=device.name)


@rule
def loss_scale_needs_a_scaler(at: Situation) -> Iterator[Finding]:
    """Only fp16-mixed scales its loss."""
    if at.spec.initial_loss_scale is not None and at.spec.precision is not Precision.FP16_MIXED:
        yield refuse("initial_loss_scale", _("Only fp16-mixed scales its loss. Choose it or leave this empty."))


@rule
def sharded_fp16_scale(at: Situation) -> Iterator[Finding]:
    """FSDP2 computes every layer in fp16, also embeddings and norms, which autocast keeps in fp32."""
    spec = at.spec
    if spec.parallelism is Parallelism.FSDP2 and spec.precision is Precision.FP16_MIXED and not spec.initial_loss_scale:
        yield warn(
            "initial_loss_scale",
            _("Under fsdp2 all layers compute in fp16; at PyTorch's first scale steps may be skipped. Try 1024."),
        )


@rule
def fp8_needs(at: Situation) -> Iterator[Finding]:
    """fp8 needs a GPU that has it and torchao, and pays only when compiled."""
    if at.spec.precision is not Precision.FP8:
        return
    if at.device_kind == "cpu":
        yield refuse("precision", _("fp8 needs a GPU of compute capability 8.9 or later; this job runs on the CPU."))
    for device in at.devices[:1]:
        if device.compute_capability is not None and device.compute_capability < _FIRST_WITH_FP8:
            yield refuse("precision", _("%(name)s has no fp8; it came with compute capability 8.9."), name=device.name)
    if at.facts is not None and not at.facts.has_torchao:
        yield refuse("precision", _("fp8 needs the package torchao on the worker: pip install torchao."))
    if at.spec.compile_mode is CompileMode.OFF:
        yield warn("compile_mode", _("fp8 without compilation is slower than bf16-mixed. Choose a compile mode."))
