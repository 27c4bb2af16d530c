"""One figure's repeats as boxes, every run drawn as a point."""

from collections.abc import Sequence

from django.utils.translation import gettext

from jobs.figures.style import Figure, colour_of, drawable, layout, name_marks, on_screen, titled
from jobs.selectors.columns import Column
from jobs.selectors.comparison import Comparison, MetricRow


def box_figure(comparison: Comparison, columns: Sequence[Column], metric: MetricRow) -> Figure | None:
    """Median, quartiles and every run of each group; None where no group holds two runs that measured it."""
    places = {job.pk: place for place, job in enumerate(comparison.jobs)}
    flat, unit = on_screen([drawable(value) for value in metric.values], metric.unit)
    groups = [[(pk, flat[places[pk]]) for pk in column.job_ids if flat[places[pk]] is not None] for column in columns]
    if not any(len(group) > 1 for group in groups):
        return None
    title = titled(metric.label, unit)
    shape = layout(
        x_title="",
        y_title=title,
        caption=gettext(
            "%(name)s of every run: box from the lower to the upper quartile, line at the median, a point for each run."
        )
        % {"name": title},
        alternative="; ".join(
            f"{column.label}: " + ", ".join(f"{value:.4g}" for _pk, value in group)
            for column, group in zip(columns, groups, strict=True)
        ),
        showlegend=False,
        hovermode="closest",
    )
    drawn = [(column, group) for column, group in zip(columns, groups, strict=True) if group]
    # Boxes stand at numbers, so that long names can be their ticks.
    name_marks(shape, [column.label for column, _group in drawn])
    return {"data": [_box(at, *each) for at, each in enumerate(drawn)], "layout": shape}


def _box(at: int, column: Column, group: Sequence[tuple[int, float | None]]) -> Figure:
    return {
        "type": "box",
        "name": column.label,
        "x": [at] * len(group),
        "y": [value for _pk, value in group],
        "hovertext": [f"#{pk}" for pk, _value in group],
        "boxpoints": "all",
        "jitter": 0.4,
        "pointpos": 0,
        "quartilemethod": "linear",
        "hovertemplate": "%{hovertext}: %{y:.5g}<extra></extra>",
        "marker": {"color": colour_of(column.place), "size": 6},
        "line": {"color": colour_of(column.place), "width": 1.4},
        "meta": {"place": column.place, "part": "box", "jobs": column.job_ids},
    }
