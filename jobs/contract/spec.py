"""`TrainSpec`: the one definition of a training job.

The form's fields, the API's schema, the command line's flags, the stored JSON and a comparison's diff all derive from
this class. An option is added here, once; nothing else lists the fields.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from jobs.contract.choices import (
    ClassWeights,
    CompileScope,
    DdpCommHook,
    LrSchedule,
    OptimizerImpl,
    SdpaBackend,
)
from jobs.contract.errors import InvalidSpec
from jobs.contract.findings import findings_from_validation
from jobs.contract.messages import gettext_noop as _
from jobs.contract.options import Group, Role, metadata, option


class Task(StrEnum):
    """What the engine does with the model."""

    TRAIN = "train"
    INFERENCE = "inference"  # forward passes only; each counts as a step


class DeviceKind(StrEnum):
    """The kind of device asked for; `auto` takes a GPU where the worker has one, else the CPU."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


class Precision(StrEnum):
    """The arithmetic of a step; `mixed` keeps weights in float32, `true` keeps nothing in it."""

    FP32 = "fp32"
    TF32 = "tf32"
    FP16_MIXED = "fp16-mixed"
    BF16_MIXED = "bf16-mixed"
    FP16_TRUE = "fp16-true"
    BF16_TRUE = "bf16-true"
    FP8 = "fp8"


class Parallelism(StrEnum):
    """How several devices share one model's training."""

    NONE = "none"
    DATA_PARALLEL = "data_parallel"
    DDP = "ddp"
    FSDP2 = "fsdp2"


class CompileMode(StrEnum):
    """Whether and how `torch.compile` compiles the model."""

    OFF = "off"
    DEFAULT = "default"
    REDUCE_OVERHEAD = "reduce-overhead"
    MAX_AUTOTUNE = "max-autotune"
    MAX_AUTOTUNE_NO_CUDAGRAPHS = "max-autotune-no-cudagraphs"


class Optimizer(StrEnum):
    """The optimizer's algorithm."""

    SGD = "sgd"
    ADAM = "adam"
    ADAMW = "adamw"
    RMSPROP = "rmsprop"
    ADAGRAD = "adagrad"


class DataLoading(StrEnum):
    """Where batches come from: a tensor that lives on the training device, or a `torch.utils.data.DataLoader`."""

    ON_DEVICE = "on-device"
    DATALOADER = "dataloader"


class TrainSpec(BaseModel):
    """One training job: which work, on what, and how. Immutable; unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: Task = option(
        Task.TRAIN,
        label=_("Task"),
        help_text=_("train updates the weights in each step; inference makes one forward pass in each step."),
        group=Group.WORK,
        role=Role.WORKLOAD,
    )
    model: str = option(
        "gpt-tiny",
        label=_("Model"),
        help_text=_("A model that the workers have."),
        group=Group.WORK,
        role=Role.WORKLOAD,
        max_length=100,
    )
    dataset: str = option(
        "stdlib-text",
        label=_("Data set"),
        help_text=_("A data set that suits the model."),
        group=Group.WORK,
        role=Role.WORKLOAD,
        max_length=100,
    )
    image_size: int | None = option(
        None,
        label=_("Image size"),
        help_text=_("Height and width that images are brought to; empty leaves the data set's own."),
        group=Group.WORK,
        role=Role.WORKLOAD,
        advanced=True,
        unit=_("pixels"),
        ge=8,
        le=1024,
    )
    sequence_length: int | None = option(
        None,
        label=_("Sequence length"),
        help_text=_("Tokens that a model sees at once; empty leaves the data set's own."),
        group=Group.WORK,
        role=Role.WORKLOAD,
        advanced=True,
        unit=_("tokens"),
        ge=8,
        le=131_072,
    )
    dropout: float = option(
        0.0,
        label=_("Dropout"),
        help_text=_("Share of activations set to zero in training. Compiled and eager runs draw them differently."),
        group=Group.WORK,
        role=Role.WORKLOAD,
        advanced=True,
        ge=0,
        lt=1,
        allow_inf_nan=False,
    )
    device: DeviceKind = option(
        DeviceKind.AUTO,
        label=_("Device"),
        help_text=_("Auto takes a GPU where the worker has one, else the CPU; the run records what it got."),
        group=Group.HARDWARE,
        role=Role.CONFIGURATION,
    )
    num_devices: int = option(
        1,
        label=_("Number of devices"),
        help_text=_("GPUs, or processes on a CPU, of each node. Each runs one rank."),
        group=Group.HARDWARE,
        role=Role.CONFIGURATION,
        ge=1,
        le=1024,
    )
    precision: Precision = option(
        Precision.FP32,
        label=_("Precision"),
        help_text=_(
            "fp32 is IEEE single precision, tf32 shortens the factors of its matrix products; mixed computes in 16 "
            "bits under autocast, true stores weights in 16 bits as well; fp8 runs linear layers in 8 bits."
        ),
        group=Group.HARDWARE,
        role=Role.CONFIGURATION,
    )
    parallelism: Parallelism = option(
        Parallelism.NONE,
        label=_("Parallelism"),
        help_text=_(
            "ddp keeps a copy of the model on each device and averages gradients; fsdp2 shares weights, gradients and "
            "optimizer state out; data_parallel is the old way, one process for all GPUs."
        ),
        group=Group.HARDWARE,
        role=Role.CONFIGURATION,
    )
    compile_mode: CompileMode = option(
        CompileMode.OFF,
        label=_("Compile mode"),
        help_text=_("torch.compile. The first step then includes the compilation and is timed apart."),
        group=Group.HARDWARE,
        role=Role.CONFIGURATION,
    )
    num_nodes: int = option(
        1,
        label=_("Nodes"),
        help_text=_("Hosts that train one model together, each on as many devices as asked for above."),
        group=Group.HARDWARE,
        role=Role.CONFIGURATION,
        advanced=True,
        ge=1,
        le=1024,
    )
    build_on_device: bool = option(
        False,
        label=_("Build on the device"),
        help_text=_("Makes the weights in the training device's memory instead of copying them there from the CPU's."),
        group=Group.HARDWARE,
        role=Role.CONFIGURATION,
        advanced=True,
    )
    compile_scope: CompileScope = option(
        CompileScope.MODEL,
        label=_("Compiled part"),
        help_text=_("The whole model in one piece, or each of its repeated blocks by itself, which compiles faster."),
        group=Group.HARDWARE,
        role=Role.CONFIGURATION,
        advanced=True,
    )
    cuda_graph: bool = option(
        False,
        label=_("CUDA graph"),
        help_text=_("Records the whole step once and replays it, so that launching its kernels costs next to nothing."),
        group=Group.HARDWARE,
        role=Role.CONFIGURATION,
        advanced=True,
    )
    channels_last: bool = option(
        False,
        label=_("Channels last"),
        help_text=_("Images and convolutions keep their channels innermost in memory."),
        group=Group.HARDWARE,
        role=Role.CONFIGURATION,
        advanced=True,
    )
    cudnn_benchmark: bool = option(
        False,
        label=_("cuDNN benchmark"),
        help_text=_("Tries cuDNN's algorithms for each convolution and keeps the fastest."),
        group=Group.HARDWARE,
        role=Role.CONFIGURATION,
        advanced=True,
    )
    deterministic: bool = option(
        False,
        label=_("Deterministic"),
        help_text=_("Only algorithms that give the same bits every time; an operation without one fails."),
        group=Group.HARDWARE,
        role=Role.CONFIGURATION,
        advanced=True,
    )
    sdpa_backend: SdpaBackend = option(
        SdpaBackend.AUTO,
        label=_("Attention kernel"),
        help_text=_("Which kernel computes attention; auto lets PyTorch choose, any other one is forced."),
        group=Group.HARDWARE,
        role=Role.CONFIGURATION,
        advanced=True,
    )
    activation_checkpointing: bool = option(
        False,
        label=_("Activation checkpointing"),
        help_text=_("Computes each block's activations again in the backward pass instead of keeping them."),
        group=Group.HARDWARE,
        role=Role.CONFIGURATION,
        advanced=True,
    )
    expandable_segments: bool = option(
        False,
        label=_("Expandable segments"),
        help_text=_("Lets the GPU's allocator grow its segments, against fragmentation."),
        group=Group.HARDWARE,
        role=Role.CONFIGURATION,
        advanced=True,
    )
    ddp_bucket_cap_mb: int | None = option(
        None,
        label=_("DDP bucket size"),
        help_text=_("Gradients travel in buckets of this size; empty leaves PyTorch's default of 25."),
        group=Group.HARDWARE,
        role=Role.CONFIGURATION,
        advanced=True,
        unit="MiB",
        ge=1,
        le=10_000,
    )
    ddp_gradient_as_bucket_view: bool = option(
        False,
        label=_("DDP gradients in buckets"),
        help_text=_("Gradients live in the buckets that travel, which saves a copy of them."),
        group=Group.HARDWARE,
        role=Role.CONFIGURATION,
        advanced=True,
    )
    ddp_static_graph: bool = option(
        False,
        label=_("DDP static graph"),
        help_text=_("Promises that every step uses the same weights in the same order."),
        group=Group.HARDWARE,
        role=Role.CONFIGURATION,
        advanced=True,
    )
    ddp_find_unused_parameters: bool = option(
        False,
        label=_("DDP finds unused parameters"),
        help_text=_("Looks through each step for weights that it did not use; needed only where there are some."),
        group=Group.HARDWARE,
        role=Role.CONFIGURATION,
        advanced=True,
    )
    ddp_comm_hook: DdpCommHook = option(
        DdpCommHook.NONE,
        label=_("DDP compression"),
        help_text=_("Gradients travel in bfloat16, or as matrices of low rank (powersgd), which changes the loss."),
        group=Group.HARDWARE,
        role=Role.CONFIGURATION,
        advanced=True,
    )
    sync_batchnorm: bool = option(
        False,
        label=_("Synchronized batch norm"),
        help_text=_("Batch norms take their statistics over all ranks."),
        group=Group.HARDWARE,
        role=Role.CONFIGURATION,
        advanced=True,
    )
    fsdp_cpu_offload: bool = option(
        False,
        label=_("FSDP offload"),
        help_text=_("Shards wait in the host's memory, and the optimizer runs there."),
        group=Group.HARDWARE,
        role=Role.CONFIGURATION,
        advanced=True,
    )
    initial_loss_scale: float | None = option(
        None,
        label=_("Initial loss scale"),
        help_text=_(
            "What fp16-mixed multiplies losses by at first; empty leaves PyTorch's 65536. Too high a scale skips steps."
        ),
        group=Group.HARDWARE,
        role=Role.CONFIGURATION,
        advanced=True,
        gt=0,
        le=2**24,
        allow_inf_nan=False,
    )
    num_threads: int | None = option(
        None,
        label=_("CPU threads"),
        help_text=_(
            "Threads per rank for work on the CPU; empty shares out all cores but one, which is left to the host."
        ),
        group=Group.HARDWARE,
        role=Role.CONFIGURATION,
        advanced=True,
        ge=1,
        le=1024,
    )
    micro_batch_size: int = option(
        32,
        label=_("Micro-batch size"),
        help_text=_("Samples per forward pass on each rank."),
        group=Group.BATCH,
        role=Role.CONFIGURATION,
        unit=_("samples"),
        ge=1,
        le=1_000_000,
    )
    grad_accum_steps: int = option(
        1,
        label=_("Gradient accumulation"),
        help_text=_("Micro-batches whose gradients are added up before each optimizer step."),
        group=Group.BATCH,
        role=Role.CONFIGURATION,
        unit=_("micro-batches"),
        ge=1,
        le=100_000,
    )
    num_steps: int | None = option(
        None,
        label=_("Steps"),
        help_text=_("Optimizer steps. Give either steps or epochs."),
        group=Group.BATCH,
        role=Role.WORKLOAD,
        ge=1,
        le=1_000_000_000,
    )
    num_epochs: int | None = option(
        None,
        label=_("Epochs"),
        help_text=_("Passes over the training split. Give either steps or epochs."),
        group=Group.BATCH,
        role=Role.WORKLOAD,
        ge=1,
        le=1_000_000,
    )
    drop_last: bool = option(
        True,
        label=_("Drop the last batch"),
        help_text=_(
            "Leaves out the samples at an epoch's end that do not fill a global batch; "
            "otherwise they make a smaller step."
        ),
        group=Group.BATCH,
        role=Role.WORKLOAD,
        advanced=True,
    )
    optimizer: Optimizer = option(
        Optimizer.ADAMW,
        label=_("Optimizer"),
        help_text=_("The algorithm that updates the weights."),
        group=Group.OPTIMIZATION,
        role=Role.WORKLOAD,
    )
    learning_rate: float = option(
        1e-3,
        label=_("Learning rate"),
        help_text=_("The highest that the schedule reaches."),
        group=Group.OPTIMIZATION,
        role=Role.WORKLOAD,
        gt=0,
        le=1000,
        allow_inf_nan=False,
    )
    lr_schedule: LrSchedule = option(
        LrSchedule.CONSTANT,
        label=_("Learning rate schedule"),
        help_text=_("How the learning rate falls after the warm-up; linear and cosine end at zero."),
        group=Group.OPTIMIZATION,
        role=Role.WORKLOAD,
    )
    warmup_steps: int = option(
        0,
        label=_("Warm-up steps"),
        help_text=_("Steps over which the learning rate rises to its full height."),
        group=Group.OPTIMIZATION,
        role=Role.WORKLOAD,
        advanced=True,
        unit=_("steps"),
        ge=0,
        le=1_000_000_000,
    )
    weight_decay: float | None = option(
        None,
        label=_("Weight decay"),
        help_text=_("Empty leaves PyTorch's default: 0.01 for adamw, 0 for the others."),
        group=Group.OPTIMIZATION,
        role=Role.WORKLOAD,
        advanced=True,
        ge=0,
        le=1000,
        allow_inf_nan=False,
    )
    momentum: float = option(
        0.0,
        label=_("Momentum"),
        help_text=_("Share of the last update that is kept; for sgd and rmsprop."),
        group=Group.OPTIMIZATION,
        role=Role.WORKLOAD,
        advanced=True,
        ge=0,
        lt=1,
        allow_inf_nan=False,
    )
    grad_clip_norm: float | None = option(
        None,
        label=_("Gradient clipping"),
        help_text=_("Longest norm that all gradients together may have; empty does not clip."),
        group=Group.OPTIMIZATION,
        role=Role.WORKLOAD,
        advanced=True,
        gt=0,
        le=1_000_000,
        allow_inf_nan=False,
    )
    class_weights: ClassWeights = option(
        ClassWeights.NONE,
        label=_("Class weights"),
        help_text=_("balanced lets each class count the same in the training loss, however many samples it has."),
        group=Group.OPTIMIZATION,
        role=Role.WORKLOAD,
        advanced=True,
    )
    optimizer_impl: OptimizerImpl = option(
        OptimizerImpl.DEFAULT,
        label=_("Optimizer implementation"),
        help_text=_("How the update is computed: tensor by tensor, in groups (foreach), or in one kernel (fused)."),
        group=Group.OPTIMIZATION,
        role=Role.CONFIGURATION,
        advanced=True,
    )
    zero_grad_set_to_none: bool = option(
        True,
        label=_("Drop gradients"),
        help_text=_("Gradients are released after each step; otherwise they are filled with zeros and kept."),
        group=Group.OPTIMIZATION,
        role=Role.CONFIGURATION,
        advanced=True,
    )
    seed: int = option(
        0,
        label=_("Seed"),
        help_text=_("Fixes the initial weights and the order of the data; repeats are paired by it."),
        group=Group.OPTIMIZATION,
        role=Role.PAIRING,
        ge=0,
        le=2**31 - 1,
    )
    data_loading: DataLoading = option(
        DataLoading.ON_DEVICE,
        label=_("Data loading"),
        help_text=_("on-device keeps the data set in the device's memory; dataloader uses PyTorch's DataLoader."),
        group=Group.DATA,
        role=Role.CONFIGURATION,
    )
    num_workers: int = option(
        0,
        label=_("Loader workers"),
        help_text=_("Processes that prepare batches ahead; 0 prepares them in the training process."),
        group=Group.DATA,
        role=Role.CONFIGURATION,
        ge=0,
        le=256,
    )
    prefetch_factor: int | None = option(
        None,
        label=_("Prefetch factor"),
        help_text=_("Batches that each loader worker keeps ready; empty leaves PyTorch's default of 2."),
        group=Group.DATA,
        role=Role.CONFIGURATION,
        advanced=True,
        ge=1,
        le=1024,
    )
    persistent_workers: bool = option(
        False,
        label=_("Persistent workers"),
        help_text=_("Keeps the loader's workers from one epoch to the next."),
        group=Group.DATA,
        role=Role.CONFIGURATION,
        advanced=True,
    )
    pin_memory: bool = option(
        False,
        label=_("Pinned memory"),
        help_text=_("Page-locked host memory, from which copies to a GPU are faster."),
        group=Group.DATA,
        role=Role.CONFIGURATION,
        advanced=True,
    )
    non_blocking: bool = option(
        False,
        label=_("Non-blocking copies"),
        help_text=_("Copies to the GPU run beside the computation; helps only from pinned memory."),
        group=Group.DATA,
        role=Role.CONFIGURATION,
        advanced=True,
    )
    time_limit_s: float | None = option(
        None,
        label=_("Time limit"),
        help_text=_("Seconds that the whole run may take, imports and compilation included; empty sets no limit."),
        group=Group.MEASUREMENT,
        role=Role.CONFIGURATION,
        advanced=True,
        unit=_("s"),
        gt=0,
        le=10_000_000,
        allow_inf_nan=False,
    )
    checkpoint_every_steps: int | None = option(
        None,
        label=_("Checkpoint every"),
        help_text=_("A file to go on from every so many steps and after the last one; the last two are kept."),
        group=Group.MEASUREMENT,
        role=Role.CONFIGURATION,
        unit=_("steps"),
        ge=1,
        le=1_000_000_000,
    )
    profile_steps: int = option(
        0,
        label=_("Steps to profile"),
        help_text=_("Extra steps after the last one under PyTorch's profiler: operators by library, and a trace."),
        group=Group.MEASUREMENT,
        role=Role.CONFIGURATION,
        advanced=True,
        unit=_("steps"),
        ge=0,
        le=1000,
    )
    phase_steps: int = option(
        5,
        label=_("Steps to time in parts"),
        help_text=_("Extra steps after the last one, in which forward, backward and the rest are timed apart."),
        group=Group.MEASUREMENT,
        role=Role.CONFIGURATION,
        advanced=True,
        unit=_("steps"),
        ge=0,
        le=1000,
    )

    @property
    def uses_ranks(self) -> bool:
        """Whether the run is several processes that torchrun starts, one per device, even if there is only one."""
        return self.parallelism in (Parallelism.DDP, Parallelism.FSDP2)

    @property
    def num_ranks(self) -> int:
        """Training processes: one per device, one in all without parallelism or with data_parallel."""
        return self.num_local_ranks * self.num_nodes

    @property
    def num_local_ranks(self) -> int:
        """Training processes on each node."""
        return self.num_devices if self.uses_ranks else 1

    @property
    def global_batch_size(self) -> int:
        """Samples per optimizer step, over all ranks."""
        return self.micro_batch_size * self.grad_accum_steps * self.num_ranks


def parse_spec(data: Mapping[str, Any] | str | bytes) -> TrainSpec:
    """The spec in a mapping or a JSON text; raises `InvalidSpec` with a sentence per wrong field."""
    try:
        if isinstance(data, str | bytes):
            return TrainSpec.model_validate_json(data)
        return TrainSpec.model_validate(data)
    except ValidationError as error:
        raise InvalidSpec(findings_from_validation(error)) from error


def fields_with_role(role: Role) -> list[str]:
    """Names of the spec's fields that play `role`, in the order in which they are declared."""
    return [name for name, field in TrainSpec.model_fields.items() if metadata(field)["role"] == role.value]
