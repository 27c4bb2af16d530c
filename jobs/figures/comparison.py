"""Every figure that a comparison shows, by its name."""

from jobs.figures.bars import bar_figure
from jobs.figures.curves import NamedCurve, curve_figure
from jobs.figures.style import Figure
from jobs.selectors.comparison import Comparison

# Memory of the device and of the process stay two quantities; each has its bars where it was measured.
_BARS = ("steady_step_time_ms", "peak_allocated_bytes", "peak_rss_bytes")


def comparison_figures(comparison: Comparison) -> dict[str, Figure]:
    """`curve_by_step` and `curve_by_wall_s`, then bars under the names of the metrics that were measured."""
    curves = [NamedCurve(f"#{compared.job_id} {compared.title}", compared.curve) for compared in comparison.curves]
    figures = {"curve_by_step": curve_figure(curves, "step"), "curve_by_wall_s": curve_figure(curves, "wall_s")}
    labels = [f"#{job.pk}" for job in comparison.jobs]
    for row in (comparison.metric(name) for name in _BARS):
        if row:
            figures[row.name] = bar_figure(labels, row.values, title=row.label, unit=row.unit)
    return figures
