"""One figure per column as bars: step time, memory."""

from collections.abc import Sequence

from django.utils.translation import gettext

from jobs.figures.style import Figure, colour_of, drawable, layout, name_marks, on_screen, titled
from jobs.selectors.columns import Column
from jobs.statistics import Spread


def names_of(columns: Sequence[Column]) -> list[str]:
    """What stands below each column's bars: the number of a job, the whole label of a group."""
    return [f"#{column.job_ids[0]}" if len(column.jobs) == 1 else column.label for column in columns]


def bar_figure(
    labels: Sequence[str],
    values: Sequence[float | None],
    *,
    title: str,
    unit: str = "",
    spreads: Sequence[Spread | None] = (),
    places: Sequence[int] = (),
    words: str = "",
) -> Figure:
    """A bar for each label, in the colours that the same jobs have as curves; no bar where nothing was measured.

    Values in `bytes` are shown as MiB, or as GiB where one of them reaches a GiB. `spreads` draws each mean's band,
    and `words` say what it is. `places` tell the colours, where they do not simply follow each other.
    """
    colours = list(places) or list(range(len(labels)))
    known = [drawable(value) for value in values]
    shown, shown_unit = on_screen(known, unit)
    name = titled(title, shown_unit)
    bars = {
        "type": "bar",
        "x": list(range(len(labels))),
        "y": shown,
        "text": ["" if value is None else f"{value:.4g}" for value in shown] if len(labels) <= _MOST_TEXTS else None,
        "textposition": "auto",
        "cliponaxis": False,
        "hovertext": list(labels),
        "hovertemplate": f"%{{hovertext}}: %{{y:.5g}} {shown_unit}<extra></extra>",
        "marker": {"color": [colour_of(place) for place in colours]},
        "meta": {"places": colours},
    }
    if any(spreads):
        bars["error_y"] = _error_bars(known, shown, spreads)
    shape = layout(
        x_title="",
        y_title=name,
        caption=(gettext("%(name)s of each run.") % {"name": name} + f" {words}").strip(),
        alternative=_alternative(name, labels, shown),
        showlegend=False,
        bargap=0.35,
    )
    # Two jobs may have the same name: bars stand at numbers, and the names are their ticks.
    name_marks(shape, labels)
    shape["yaxis"]["rangemode"] = "tozero"
    return {"data": [bars], "layout": shape}


# With more bars than this their values stand no more in them, but where the pointer is.
_MOST_TEXTS = 24


def _error_bars(
    known: Sequence[float | None], shown: Sequence[float | None], spreads: Sequence[Spread | None]
) -> Figure:
    """How far each band reaches, on the scale of what is shown."""
    scale = next((value / raw for raw, value in zip(known, shown, strict=True) if raw and value), 1.0)
    return {
        "type": "data",
        "symmetric": False,
        "array": [scale * (spread.high - spread.mean) if spread else 0 for spread in spreads],
        "arrayminus": [scale * (spread.mean - spread.low) if spread else 0 for spread in spreads],
        "thickness": 1.2,
        "width": 4,
    }


def _alternative(name: str, labels: Sequence[str], values: Sequence[float | None]) -> str:
    told = [f"{label} {value:.4g}" for label, value in zip(labels, values, strict=True) if value is not None]
    return f"{name}: " + "; ".join(told[:24])
