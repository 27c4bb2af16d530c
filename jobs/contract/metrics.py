"""`Summary`: the figures that a finished run is judged by, each with its unit and its better direction."""

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from jobs.contract.messages import gettext_noop as _


class Better(StrEnum):
    """Which way a metric improves; some only describe."""

    LOWER = "lower"
    HIGHER = "higher"
    NEITHER = "neither"


def metric(label: str, unit: str = "", better: Better = Better.NEITHER, description: str | None = None) -> Any:
    """A field of `Summary`, None where it does not apply (memory of a GPU on a CPU, accuracy of a language model)."""
    return Field(None, title=label, description=description, json_schema_extra={"unit": unit, "better": better.value})


class Summary(BaseModel):
    """What one run measured. Names carry their unit; phases never overlap and are never added up in one figure."""

    model_config = ConfigDict(ser_json_inf_nan="strings")

    num_steps: int | None = metric(_("Steps"))
    num_samples: int | None = metric(_("Samples seen"))
    steady_step_time_ms: float | None = metric(_("Step time"), "ms", Better.LOWER)
    samples_per_s: float | None = metric(_("Throughput"), "samples/s", Better.HIGHER)
    tokens_per_s: float | None = metric(_("Throughput in tokens"), "tokens/s", Better.HIGHER)
    # Of single steps in the steady part: on a CPU by the host's clock, on a GPU between events on its stream.
    step_time_p50_ms: float | None = metric(_("Step time, median of single steps"), "ms", Better.LOWER)
    step_time_p90_ms: float | None = metric(_("Step time, 90th percentile"), "ms", Better.LOWER)
    step_time_p99_ms: float | None = metric(_("Step time, 99th percentile"), "ms", Better.LOWER)
    is_steady: bool | None = metric(_("Steady"))
    not_steady_because: str | None = metric(_("Why not steady"))
    first_step_s: float | None = metric(_("First step (with compilation)"), "s", Better.LOWER)
    started_warm: bool | None = metric(
        _("Started warm"),
        description=_("In a process that had its imports done, so that imports and first step are shorter."),
    )
    import_s: float | None = metric(_("Imports"), "s", Better.LOWER)
    build_s: float | None = metric(_("Build"), "s", Better.LOWER)
    warmup_s: float | None = metric(_("Warm-up"), "s")
    steady_s: float | None = metric(_("Steady part"), "s")
    train_s: float | None = metric(_("Training"), "s", Better.LOWER)
    checkpoint_s: float | None = metric(_("Writing checkpoints"), "s")
    eval_s: float | None = metric(_("Evaluation"), "s", Better.LOWER)
    # Parts of a step in extra steps that wait for the device after each: they do not overlap as in the timed steps.
    phase_data_wait_ms: float | None = metric(_("Waiting for data, per step"), "ms", Better.LOWER)
    phase_host_to_device_ms: float | None = metric(_("Copy to the device, per step"), "ms", Better.LOWER)
    phase_forward_ms: float | None = metric(_("Forward, per step"), "ms", Better.LOWER)
    phase_backward_ms: float | None = metric(_("Backward, per step"), "ms", Better.LOWER)
    phase_optimizer_ms: float | None = metric(_("Optimizer, per step"), "ms", Better.LOWER)
    phase_communication_exposed_ms: float | None = metric(
        _("Exposed communication, per step"),
        "ms",
        Better.LOWER,
        _("Step less a step that sends neither gradients nor, under fsdp2, weights."),
    )
    flops_per_step: float | None = metric(_("Model FLOPs of a step"), "FLOP")
    flops_per_s: float | None = metric(_("Model FLOPs per second"), "FLOP/s", Better.HIGHER)
    mfu: float | None = metric(_("Model FLOPs utilization of the dense peak (0 to 1)"), "", Better.HIGHER)
    final_train_loss: float | None = metric(_("Training loss"), "", Better.LOWER)
    final_eval_loss: float | None = metric(_("Evaluation loss"), "", Better.LOWER)
    eval_accuracy: float | None = metric(_("Evaluation accuracy"), "", Better.HIGHER)
    peak_rss_bytes: int | None = metric(_("Peak process memory"), "bytes", Better.LOWER)
    rss_before_build_bytes: int | None = metric(_("Process memory before build"), "bytes")
    peak_allocated_bytes: int | None = metric(_("Peak allocated GPU memory"), "bytes", Better.LOWER)
    peak_reserved_bytes: int | None = metric(_("Peak reserved GPU memory"), "bytes", Better.LOWER)
    # As NVML sees the whole device: with the CUDA context and whatever other processes hold on it.
    peak_device_used_bytes: int | None = metric(_("Peak used GPU memory"), "bytes", Better.LOWER)
    energy_j: float | None = metric(_("Energy of the steady part"), "J", Better.LOWER)
    spoiled_by: list[str] | None = metric(_("What may have spoiled the measurement"))
    num_parameters: int | None = metric(_("Parameters"))
    device_name: str | None = metric(_("Device"))
    observed_dtype: str | None = metric(_("Observed dtype"))
    attention_kernel: str | None = metric(_("Attention kernel"))
    num_graphs: int | None = metric(_("Compiled graphs"))
    num_graph_breaks: int | None = metric(_("Graph breaks"), "", Better.LOWER)
    num_recompiles: int | None = metric(_("Compiled again after the first step"), "", Better.LOWER)
    num_compile_cache_hits: int | None = metric(_("Graphs found in the compile cache"), "", Better.HIGHER)
    num_compile_cache_misses: int | None = metric(_("Graphs compiled anew"), "", Better.LOWER)
    capture_s: float | None = metric(_("Recording of the CUDA graph"), "s", Better.LOWER)
    fp32_arithmetic: str | None = metric(_("Arithmetic of float32"))
    num_skipped_steps: int | None = metric(_("Steps skipped by the gradient scaler"), "", Better.LOWER)
