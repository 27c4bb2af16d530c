"""Rules about compilation, CUDA graphs, kernels and memory."""

from collections.abc import Iterator

from jobs.contract.choices import CompileScope, DdpCommHook, OptimizerImpl, SdpaBackend
from jobs.contract.findings import Finding
from jobs.contract.messages import gettext_noop as _
from jobs.contract.rules.table import Situation, refuse, rule, warn
from jobs.contract.spec import CompileMode, Optimizer, Parallelism, Precision

GRAPH_WARMUP_STEPS = 3
GRAPH_WARMUP_STEPS_DDP = 11  # DDP builds its buckets anew after some steps and must be done with it
_MAKING_GRAPHS = (CompileMode.REDUCE_OVERHEAD, CompileMode.MAX_AUTOTUNE)
_SIXTEEN_BITS = (Precision.BF16_MIXED, Precision.FP16_MIXED, Precision.BF16_TRUE, Precision.FP16_TRUE, Precision.FP8)


@rule
def compile_options(at: Situation) -> Iterator[Finding]:
    """The parts of compilation that need something to compile, or a GPU."""
    spec = at.spec
    if spec.compile_scope is CompileScope.BLOCK and spec.compile_mode is CompileMode.OFF:
        yield refuse("compile_scope", _("Nothing is compiled. Choose a compile mode, or leave this as it was."))
    if spec.compile_mode is CompileMode.REDUCE_OVERHEAD and at.device_kind == "cpu":
        yield warn("compile_mode", _("reduce-overhead makes CUDA graphs; on a CPU it compiles as default does."))
    if spec.compile_mode is CompileMode.MAX_AUTOTUNE and at.device_kind == "cpu":
        yield warn("compile_mode", _("max-autotune makes CUDA graphs too; on a CPU it only tries out kernels."))


@rule
def compiled_graphs_and_accumulation(at: Situation) -> Iterator[Finding]:
    """Compiled CUDA graphs write each gradient to one place, from which it would have to be added up first.

    PyTorch issues 96693 (wrong gradients, without a word) and 169545 (an error).
    """
    spec = at.spec
    if at.device_kind == "cuda" and spec.compile_mode in _MAKING_GRAPHS and spec.grad_accum_steps > 1:
        yield refuse(
            "compile_mode",
            _(
                "The CUDA graphs of %(mode)s overwrite gradients that are still to be accumulated. "
                "Choose the mode default or max-autotune-no-cudagraphs."
            ),
            mode=spec.compile_mode.value,
        )


@rule
def cuda_graph_of_what(at: Situation) -> Iterator[Finding]:
    """A recorded step must be on one GPU per process, of one shape, and free of waits for the host."""
    spec = at.spec
    if not spec.cuda_graph:
        return
    if at.device_kind == "cpu":
        yield refuse("cuda_graph", _("CUDA graphs need a GPU; this job runs on the CPU."))
    if spec.compile_mode in _MAKING_GRAPHS:
        yield refuse(
            "cuda_graph",
            _("%(mode)s makes CUDA graphs of its own. Choose the mode default or max-autotune-no-cudagraphs."),
            mode=spec.compile_mode.value,
        )
    if spec.parallelism in (Parallelism.DATA_PARALLEL, Parallelism.FSDP2):
        yield refuse("cuda_graph", _("A step of %(name)s cannot be recorded. Choose ddp."), name=spec.parallelism.value)


@rule
def cuda_graph_of_what_asks_the_host(at: Situation) -> Iterator[Finding]:
    """What waits for the host or draws its random numbers twice cannot be recorded."""
    spec = at.spec
    if not spec.cuda_graph:
        return
    if spec.ddp_comm_hook is DdpCommHook.POWERSGD:
        yield refuse("ddp_comm_hook", _("powersgd waits for the GPU in each step: a CUDA graph cannot record that."))
    if spec.ddp_find_unused_parameters:
        yield refuse(
            "ddp_find_unused_parameters",
            _("Unused parameters are looked for on the host in each step: a CUDA graph cannot record that."),
        )
    if spec.activation_checkpointing and spec.dropout > 0:
        yield refuse(
            "dropout",
            _("Activations that are computed again in a CUDA graph would be dropped differently. Set dropout to 0."),
        )


@rule
def cuda_graph_optimizer(at: Situation) -> Iterator[Finding]:
    """An optimizer that is recorded keeps its state on the GPU and never asks the host."""
    spec = at.spec
    if not spec.cuda_graph:
        return
    is_fused = spec.optimizer_impl is OptimizerImpl.FUSED
    if not is_fused and spec.optimizer_impl is not OptimizerImpl.CAPTURABLE:
        yield refuse("optimizer_impl", _("A CUDA graph needs a capturable or a fused optimizer."))
    if spec.optimizer is Optimizer.ADAGRAD:
        yield refuse("optimizer", _("adagrad cannot be recorded in a CUDA graph. Choose another optimizer."))
    if spec.precision is Precision.FP16_MIXED and not is_fused:
        yield refuse(
            "optimizer_impl", _("Under a gradient scaler only a fused optimizer can be recorded in a CUDA graph.")
        )


@rule
def cuda_graph_length(at: Situation) -> Iterator[Finding]:
    """A run that ends before its warm-up would record nothing."""
    spec = at.spec
    if not spec.cuda_graph or at.num_steps is None:
        return
    warmup = graph_warmup_steps(spec.parallelism)
    if at.num_steps <= warmup:
        yield refuse(
            at.length_field, _("A CUDA graph is recorded after %(warmup)s steps; ask for more steps."), warmup=warmup
        )


@rule
def one_shape_of_batch(at: Situation) -> Iterator[Finding]:
    """A smaller step at the end of an epoch has another shape than those that were recorded or compiled."""
    if at.spec.drop_last:
        return
    if at.spec.cuda_graph:
        yield refuse("drop_last", _("A CUDA graph takes batches of one size only: the last batch must be dropped."))
    if at.spec.compile_mode is not CompileMode.OFF:
        yield warn("drop_last", _("The epoch's last batch has another size, for which the model is compiled again."))


def graph_warmup_steps(parallelism: Parallelism) -> int:
    """Steps that are taken before the step is recorded."""
    return GRAPH_WARMUP_STEPS_DDP if parallelism is Parallelism.DDP else GRAPH_WARMUP_STEPS


@rule
def gpu_only_switches(at: Situation) -> Iterator[Finding]:
    """cuDNN and the GPU's allocator have no say on a CPU."""
    if at.device_kind == "cpu" and at.spec.cudnn_benchmark:
        yield refuse("cudnn_benchmark", _("cuDNN is for GPUs; this job runs on the CPU."))
    if at.device_kind == "cpu" and at.spec.expandable_segments:
        yield refuse("expandable_segments", _("This is about the GPU's allocator; this job runs on the CPU."))
    if at.spec.cudnn_benchmark and at.spec.deterministic:
        yield warn("cudnn_benchmark", _("Only deterministic algorithms are tried, so there is little to choose from."))


@rule
def attention_kernel(at: Situation) -> Iterator[Finding]:
    """A forced kernel must exist on the device and take the precision."""
    asked = at.spec.sdpa_backend
    if at.device_kind == "cpu" and asked in (SdpaBackend.EFFICIENT, SdpaBackend.CUDNN):
        yield refuse("sdpa_backend", _("On a CPU there are the kernels math and flash. Choose one of these or auto."))
    if at.device_kind != "cuda" or at.spec.precision in _SIXTEEN_BITS:
        return
    if asked in (SdpaBackend.FLASH, SdpaBackend.CUDNN):
        yield refuse(
            "sdpa_backend",
            _("On a GPU %(name)s attention takes 16 bits only. Choose bf16-mixed or fp16-mixed, or efficient."),
            name=asked.value,
        )
