"""One figure per job as bars: step time, memory."""

from collections.abc import Sequence

from jobs.figures.style import Figure, colour_of, drawable, layout

_MIB, _GIB = 2**20, 2**30


def bar_figure(labels: Sequence[str], values: Sequence[float | None], *, title: str, unit: str = "") -> Figure:
    """A bar for each label, in the colours that the same jobs have as curves; no bar where nothing was measured.

    Values in `bytes` are shown as MiB, or as GiB where one of them reaches a GiB.
    """
    shown, shown_unit = _on_screen([drawable(value) for value in values], unit)
    bars = {
        "type": "bar",
        "x": list(range(len(labels))),
        "y": shown,
        "text": ["" if value is None else f"{value:.4g}" for value in shown],
        "textposition": "auto",
        "cliponaxis": False,
        "hovertext": list(labels),
        "hovertemplate": f"%{{hovertext}}: %{{y:.5g}} {shown_unit}<extra></extra>",
        "marker": {"color": [colour_of(index) for index in range(len(labels))]},
    }
    shape = layout(
        x_title="", y_title=f"{title} ({shown_unit})" if shown_unit else title, showlegend=False, bargap=0.35
    )
    # Two jobs may have the same name: bars stand at numbers, and the names are their ticks.
    shape["xaxis"] |= {"tickvals": bars["x"], "ticktext": list(labels)}
    shape["yaxis"]["rangemode"] = "tozero"
    return {"data": [bars], "layout": shape}


def _on_screen(values: list[float | None], unit: str) -> tuple[list[float | None], str]:
    if unit != "bytes":
        return values, unit
    largest = max((value for value in values if value is not None), default=0)
    size, name = (_GIB, "GiB") if largest >= _GIB else (_MIB, "MiB")
    return [None if value is None else value / size for value in values], name
