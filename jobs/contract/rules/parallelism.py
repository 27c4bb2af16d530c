"""Rules about how several devices share one training."""

from collections.abc import Iterator

from jobs.contract.choices import CompileScope, DdpCommHook, OptimizerImpl
from jobs.contract.findings import Finding
from jobs.contract.messages import gettext_noop as _
from jobs.contract.rules.table import Situation, refuse, rule, warn
from jobs.contract.spec import CompileMode, Optimizer, Parallelism, TrainSpec

# PowerSGD's own default, 1,000 steps without compression, is longer than most runs here and would do nothing in them.
# Two is the least that it takes together with error feedback and warm start.
POWERSGD_START_STEP = 2


@rule
def data_parallel_needs_gpus(at: Situation) -> Iterator[Finding]:
    """On a CPU DataParallel is a pass-through, and with one GPU as well."""
    spec = at.spec
    if spec.parallelism is not Parallelism.DATA_PARALLEL:
        return
    if at.device_kind == "cpu":
        yield refuse("parallelism", _("data_parallel does nothing on a CPU. Choose ddp or fsdp2."))
    elif spec.num_devices < 2:
        yield refuse("num_devices", _("data_parallel needs two GPUs or more."))
    if spec.micro_batch_size < spec.num_devices:
        yield refuse(
            "micro_batch_size", _("data_parallel splits each micro-batch over the GPUs; give it as many samples.")
        )
    if spec.compile_mode is not CompileMode.OFF:
        if spec.compile_scope is CompileScope.BLOCK:
            yield refuse("compile_scope", _("data_parallel copies blocks in a way that compiled ones do not survive."))
        yield warn("compile_mode", _("torch.compile gains little under data_parallel. Choose ddp."))


@rule
def options_of_ddp(at: Situation) -> Iterator[Finding]:
    """What is set for DDP means something only under DDP."""
    if at.spec.parallelism is Parallelism.DDP:
        return
    for field in _used_ddp_options(at.spec):
        yield refuse(field, _("This option is for ddp. Choose ddp, or leave it as it was."))


def _used_ddp_options(spec: TrainSpec) -> list[str]:
    used = {
        "ddp_bucket_cap_mb": spec.ddp_bucket_cap_mb is not None,
        "ddp_gradient_as_bucket_view": spec.ddp_gradient_as_bucket_view,
        "ddp_static_graph": spec.ddp_static_graph,
        "ddp_find_unused_parameters": spec.ddp_find_unused_parameters,
        "ddp_comm_hook": spec.ddp_comm_hook is not DdpCommHook.NONE,
        "sync_batchnorm": spec.sync_batchnorm,
    }
    return [name for name, is_used in used.items() if is_used]


@rule
def ddp_on_this_device(at: Situation) -> Iterator[Finding]:
    """Some of DDP's options are NCCL's or CUDA's."""
    spec = at.spec
    if at.device_kind == "cpu" and spec.parallelism is Parallelism.DDP:
        if spec.sync_batchnorm:
            yield refuse("sync_batchnorm", _("Synchronized batch norm runs on GPUs only."))
        if spec.ddp_comm_hook is DdpCommHook.BF16:
            yield refuse("ddp_comm_hook", _("Compression to bfloat16 needs NCCL, which needs GPUs."))
        if spec.ddp_comm_hook is DdpCommHook.POWERSGD and spec.ddp_bucket_cap_mb is not None:
            yield refuse("ddp_bucket_cap_mb", _("On a CPU powersgd hangs with more than one bucket. Leave this empty."))
        if spec.ddp_comm_hook is DdpCommHook.POWERSGD and spec.ddp_find_unused_parameters:
            # What ranks say to each other about parameters and powersgd's own parts overtake each other under gloo.
            yield refuse(
                "ddp_find_unused_parameters", _("On a CPU powersgd cannot be combined with this. Leave it off.")
            )
    if spec.ddp_comm_hook is DdpCommHook.POWERSGD:
        yield warn("ddp_comm_hook", _("powersgd changes the loss: compare it at equal loss, not only at equal steps."))
        if at.num_steps is not None and at.num_steps <= POWERSGD_START_STEP:
            yield warn(
                at.length_field,
                _("powersgd compresses nothing in its first %(steps)s steps; ask for more."),
                steps=POWERSGD_START_STEP,
            )
    if spec.ddp_find_unused_parameters and spec.ddp_static_graph:
        yield warn(
            "ddp_find_unused_parameters", _("With a static graph unused parameters are found once, without this.")
        )


@rule
def static_graph_and_accumulation(at: Situation) -> Iterator[Finding]:
    """DDP learns its static graph in a first backward pass that must end with a reduction."""
    if at.spec.ddp_static_graph and at.spec.grad_accum_steps > 1:
        yield refuse("ddp_static_graph", _("A static graph cannot be combined with gradient accumulation."))


@rule
def sharded_layout(at: Situation) -> Iterator[Finding]:
    """FSDP2 cuts weights into shards along memory, and channels last mixes the order of a convolution's."""
    if at.spec.parallelism is Parallelism.FSDP2 and at.spec.channels_last:
        yield refuse("channels_last", _("fsdp2 cannot share out weights with their channels last. Choose ddp."))


@rule
def sharded_fused_optimizer(at: Situation) -> Iterator[Finding]:
    """Of the fused optimizers torch's DTensor knows how to share out Adam's only (torch 2.13)."""
    spec = at.spec
    if spec.parallelism is not Parallelism.FSDP2 or spec.optimizer_impl is not OptimizerImpl.FUSED:
        return
    if spec.optimizer in (Optimizer.SGD, Optimizer.ADAGRAD):
        yield refuse(
            "optimizer_impl",
            _("fsdp2 cannot share out a fused %(optimizer)s. Choose foreach, or adam or adamw."),
            optimizer=spec.optimizer.value,
        )


@rule
def offload_needs_fsdp(at: Situation) -> Iterator[Finding]:
    """Offload is FSDP's, from a GPU to its host."""
    if not at.spec.fsdp_cpu_offload:
        return
    if at.spec.parallelism is not Parallelism.FSDP2:
        yield refuse("fsdp_cpu_offload", _("This option is for fsdp2. Choose fsdp2, or leave it off."))
    elif at.device_kind == "cpu":
        yield refuse("fsdp_cpu_offload", _("On a CPU the shards are in the host's memory already."))
    if at.spec.optimizer_impl is OptimizerImpl.CAPTURABLE:
        yield refuse("optimizer_impl", _("capturable updates weights on the GPU; offloaded ones are in host memory."))
