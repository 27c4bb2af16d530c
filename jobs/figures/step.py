"""Where a step goes: one stacked bar for each run or group."""

from collections.abc import Sequence

from django.utils.translation import gettext

from jobs.figures.style import LEAST_WIDTH_PX, Figure, colour_of, in_lines, layout, shortened
from jobs.selectors.phases import PHASES, StepParts

# Up to this many bars have room for a label of two lines.
_MOST_ROOMY = 12


def step_figure(steps: Sequence[StepParts]) -> Figure:
    """Milliseconds of a step by part, a bar for each column, in the order given from the top."""
    is_roomy = len(steps) <= _MOST_ROOMY
    labels = [in_lines(step.column.label, 34, most=2) if is_roomy else shortened(step.column.label) for step in steps]
    names = [name for name in PHASES if any(name in step.parts_ms for step in steps)]
    shape = layout(
        x_title=gettext("Time of a step (ms)"),
        y_title="",
        caption=gettext(
            "Parts of a step in milliseconds, measured in extra steps that wait for the device after each part; "
            "their sum may exceed the step time, where parts overlap."
        ),
        alternative="; ".join(f"{step.column.label}: {step.verdict}" for step in steps),
        barmode="stack",
        bargap=0.35,
        showlegend=True,
        hovermode="closest",
    )
    shape["legend"] |= {"y": 1.02, "yanchor": "bottom", "traceorder": "normal"}
    shape["yaxis"] |= {"tickvals": list(range(len(steps))), "ticktext": labels, "autorange": "reversed"}
    shape["meta"]["least_width_px"] = LEAST_WIDTH_PX
    shape["height"] = 120 + (38 if is_roomy else 20) * max(2, len(steps))
    return {"data": [_part(name, steps) for name in names], "layout": shape}


def _part(name: str, steps: Sequence[StepParts]) -> Figure:
    place = list(PHASES).index(name)
    shares = [100 * step.parts_ms.get(name, 0.0) / step.total_ms for step in steps]
    return {
        "type": "bar",
        "orientation": "h",
        "name": str(PHASES[name]),
        "x": [step.parts_ms.get(name) for step in steps],
        "y": list(range(len(steps))),
        "customdata": shares,
        "hovertext": [step.column.label for step in steps],
        "text": [f"{share:.0f} %" if share >= 8 else "" for share in shares],
        "textposition": "inside",
        "insidetextanchor": "middle",
        "textangle": 0,
        "hovertemplate": "%{hovertext}<br>%{fullData.name}: %{x:.4g} ms (%{customdata:.0f} %)<extra></extra>",
        "marker": {"color": colour_of(place)},
        "meta": {"place": place},
    }
