"""Series and axes in words, with their units."""

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from jobs.selectors.overlay import Axis

_SERIES_TITLES: dict[str, Promise] = {
    "train_loss": _("Training loss"),
    "eval_loss": _("Evaluation loss"),
    "eval_accuracy": _("Evaluation accuracy (0 to 1)"),
    "step_time_ms": _("Step time (ms)"),
    "samples_per_s": _("Throughput (samples/s)"),
    "learning_rate": _("Learning rate"),
    "telemetry.cpu_percent": _("Host CPU (%)"),
    "telemetry.process_cpu_percent": _("CPU of the process (100 % a core)"),
    "telemetry.process_rss_bytes": _("Process memory (bytes)"),
    "telemetry.load_average": _("Load average of the host"),
    "telemetry.gpu_utilization_percent": _("GPU in use (%)"),
    "telemetry.gpu_memory_used_bytes": _("GPU memory in use (bytes)"),
    "telemetry.gpu_power_w": _("GPU power (W)"),
    "telemetry.gpu_temperature_c": _("GPU temperature (°C)"),
    "telemetry.gpu_sm_clock_mhz": _("GPU clock (MHz)"),
    "telemetry.gpu_memory_clock_mhz": _("GPU memory clock (MHz)"),
    "telemetry.gpu_throttle_reasons": _("GPU throttle reasons (bit mask)"),
    "telemetry.gpu_foreign_processes": _("Other processes on the GPU"),
}
AXIS_TITLES: dict[str, Promise] = {
    Axis.STEP: _("Optimizer step"),
    Axis.SAMPLES: _("Samples seen"),
    Axis.TOKENS: _("Tokens seen"),
    Axis.WALL: _("Wall time since the first step (s)"),
    Axis.CLOCK: _("Time of day (UTC)"),
    Axis.ENERGY: _("Energy taken by the GPUs (J)"),
}

# Where larger is better; of every other series the lowest value is the best one.
_HIGHER_IS_BETTER = ("accuracy", "samples_per_s", "tokens_per_s", "utilization")


def series_title(series: str) -> str:
    """A series in words with its unit; its own name where there are none."""
    return str(_SERIES_TITLES.get(series, series))


def axis_title(x: str) -> str:
    """What stands under a plot: an axis or, joined by step, another series."""
    return str(AXIS_TITLES.get(x) or series_title(x))


def is_lower_better(series: str) -> bool:
    """Which way a series improves."""
    return not any(word in series for word in _HIGHER_IS_BETTER)
