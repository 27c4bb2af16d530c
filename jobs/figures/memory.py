"""Memory by kind: what the process, the allocator and the device each count stays apart."""

from collections.abc import Mapping, Sequence

from django.utils.translation import gettext

from jobs.figures.bars import names_of
from jobs.figures.style import Figure, colour_of, drawable, layout, name_marks, on_screen, titled
from jobs.selectors.baseline import CellRow
from jobs.selectors.columns import Column

_KINDS = ("peak_allocated_bytes", "peak_reserved_bytes", "peak_device_used_bytes", "peak_rss_bytes")


def memory_figure(columns: Sequence[Column], rows: Mapping[str, CellRow]) -> Figure | None:
    """Peaks side by side for each column; None where no memory was measured."""
    known = [rows[name] for name in _KINDS if name in rows]
    if not known:
        return None
    values = [[drawable(cell.value) for cell in row.cells] for row in known]
    flat, unit = on_screen([value for row in values for value in row], "bytes")
    rows_shown = [flat[at : at + len(columns)] for at in range(0, len(flat), len(columns))]
    shape = layout(
        x_title="",
        y_title=titled(gettext("Peak memory"), unit),
        caption=_caption(len(known), unit),
        alternative="; ".join(
            f"{row.metric.label}: "
            + ", ".join(f"{column.label} {value:.3g}" for column, value in zip(columns, own, strict=True) if value)
            for row, own in zip(known, rows_shown, strict=True)
        ),
        barmode="group",
        bargap=0.3,
        showlegend=True,
        hovermode="closest",
    )
    shape["legend"] |= {"y": 1.02, "yanchor": "bottom"}
    name_marks(shape, names_of(columns))
    shape["yaxis"]["rangemode"] = "tozero"
    data = [
        {
            "type": "bar",
            "name": row.metric.label,
            "x": list(range(len(columns))),
            "y": own,
            "hovertext": [column.label for column in columns],
            "hovertemplate": f"%{{hovertext}}: %{{y:.4g}} {unit}<extra>%{{fullData.name}}</extra>",
            "marker": {"color": colour_of(place)},
            "meta": {"place": place},
        }
        for place, (row, own) in enumerate(zip(known, rows_shown, strict=True))
    ]
    return {"data": data, "layout": shape}


def _caption(num_kinds: int, unit: str) -> str:
    """What is drawn; that kinds overlap matters where there are several."""
    words = gettext("Peaks in %(unit)s; with repeats their mean.") % {"unit": unit}
    if num_kinds < 2:
        return words
    return words + " " + gettext("The kinds contain each other, and never add up.")
