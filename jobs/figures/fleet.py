"""Waits, outcomes and use of the devices, over a day or a week."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from django.utils.translation import gettext

from jobs.contract.states import State
from jobs.figures.style import Figure, colour_of, drawable, layout
from jobs.models.job import STATE_LABELS
from jobs.selectors.use import Buckets, FleetUse, HostUse, Outcomes, Waits

_MINUTE_S = 60

# One hue from nothing to the palette's blue; transparent where nothing was used, so that it suits light and dark.
_SCALE = [[0, "rgba(0,114,178,0.06)"], [0.25, "rgba(0,114,178,0.3)"], [1, "rgba(0,114,178,1)"]]

# The worst is drawn warm, the good cool, in the palette's colours; what people did themselves is grey.
_OUTCOME_COLOURS = {
    "succeeded": colour_of(2),
    "failed": colour_of(3),
    "out_of_memory": colour_of(1),
    "diverged": colour_of(4),
    "timed_out": colour_of(5),
    "lost": "#8b1a1a",
    "cancelled": "#8a94a6",
}


def waits_figure(waits: Waits) -> Figure:
    """Median and 90th percentile of the wait, in minutes, by the time at which jobs started."""
    x = _middles(waits.buckets)
    lines = [
        _line(0, gettext("Median"), x, waits.median_s, waits.num_started),
        _line(3, gettext("90th percentile"), x, waits.p90_s, waits.num_started),
    ]
    shape = layout(x_title="", y_title=gettext("Wait (min)"), showlegend=True, hovermode="x unified")
    shape["yaxis"]["rangemode"] = "tozero"
    shape["xaxis"] |= {"type": "date", "range": _ends(waits.buckets)}
    return {"data": lines, "layout": shape}


def _line(place: int, name: str, x: list[str], seconds: Sequence[float | None], counts: Sequence[int]) -> Figure:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": x,
        "y": [None if value is None else drawable(value / _MINUTE_S) for value in seconds],
        "customdata": list(counts),
        "connectgaps": False,
        "line": {"color": colour_of(place), "width": 2},
        "marker": {"color": colour_of(place), "size": 5},
        "hovertemplate": gettext("%{y:.3g} min, %{customdata} started"),
    }


def outcomes_figure(outcomes: Outcomes) -> Figure:
    """How many attempts ended in each part of the time, stacked by outcome."""
    x = _middles(outcomes.buckets)
    bars = [
        {
            "type": "bar",
            "name": str(STATE_LABELS[State(outcome)]),
            "x": x,
            "y": outcomes.counts[outcome],
            "marker": {"color": colour},
            "hovertemplate": "%{y}",
        }
        for outcome, colour in _OUTCOME_COLOURS.items()
        if outcome in outcomes.counts
    ]
    shape = layout(
        x_title="", y_title=gettext("Ended"), barmode="stack", bargap=0.15, hovermode="x unified", showlegend=True
    )
    shape["xaxis"] |= {"type": "date", "range": _ends(outcomes.buckets)}
    return {"data": bars, "layout": shape}


def use_figure(use: FleetUse, what: Literal["leased", "busy"]) -> Figure:
    """A row per host, a column per part of the time: the share of its devices that jobs held, or that was busy."""
    hosts = [host for host in reversed(use.hosts) if _has_much_to_show(host, use, what)]
    names = [_host_name(host) for host in hosts]
    cells = {
        "type": "heatmap",
        "x": _middles(use.buckets),
        "y": names,
        "z": [[None if value is None else round(100 * value, 1) for value in _shares(host, what)] for host in hosts],
        "zmin": 0,
        "zmax": 100,
        "colorscale": _SCALE,
        "xgap": 1,
        "ygap": 2,
        "colorbar": {"ticksuffix": " %", "thickness": 10, "outlinewidth": 0, "len": 1},
        "hovertemplate": "%{y}<br>%{x|%a %H:%M}: %{z:.0f} %<extra></extra>",
    }
    shape = layout(x_title="", y_title="", hovermode="closest")
    shape["xaxis"] |= {"type": "date", "range": _ends(use.buckets), "showgrid": False}
    shape["yaxis"] |= {"type": "category", "showgrid": False, "ticks": ""}
    shape["height"] = 84 + 30 * max(1, len(hosts))
    return {"data": [cells], "layout": shape}


def _has_much_to_show(host: HostUse, use: FleetUse, what: Literal["leased", "busy"]) -> bool:
    """No row for what told nothing, nor for the CPU of a GPU host that no job held."""
    if what == "busy":
        return any(value is not None for value in host.busy)
    has_gpus = any(other.hostname == host.hostname and other.kind == "cuda" for other in use.hosts)
    return host.kind == "cuda" or not has_gpus or any(host.leased)


def _shares(host: HostUse, what: Literal["leased", "busy"]) -> Sequence[float | None]:
    return host.leased if what == "leased" else host.busy


def _host_name(host: HostUse) -> str:
    if host.kind == "cpu":
        return f"{host.hostname} · CPU"
    return f"{host.hostname} · {host.num_devices} GPU"


def _middles(buckets: Buckets) -> list[str]:
    """The middle of each part: where a bar or a cell stands."""
    return [_plain(start + buckets.size / 2) for start in buckets.starts]


def _ends(buckets: Buckets) -> list[str]:
    return [_plain(buckets.began_at), _plain(buckets.ends_at)]


def _plain(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S")
