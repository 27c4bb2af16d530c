"""Memory and devices over wall time: a row for each sampled quantity, all of them over one axis."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobs.contract.series import unit_of
from jobs.figures.curves import band_in_words, lost_points_in_words
from jobs.figures.series import axis_title
from jobs.figures.style import Figure, colour_of, dash_of, drawables, jobs_in_words, layout, pale, shortened, titled
from jobs.selectors.overlay import Axis, Line, Overlay

_TITLES: dict[str, Promise] = {
    "telemetry.gpu_memory_used_bytes": _("GPU memory in use"),
    "telemetry.process_rss_bytes": _("Process memory"),
    "telemetry.gpu_utilization_percent": _("GPU in use"),
    "telemetry.gpu_power_w": _("GPU power"),
    "telemetry.gpu_temperature_c": _("GPU temperature"),
    "telemetry.gpu_sm_clock_mhz": _("GPU clock"),
    "telemetry.process_cpu_percent": _("CPU of the process, 100 % a core"),
    "telemetry.cpu_percent": _("CPU of the host"),
}
_EDGES_PX = 84
_ROW_PX = {1: 210, 2: 160}  # by how many rows there are
_ROW_OF_MANY_PX = 124
_GAP = 0.24  # of a row's height, for the title above it
_MOST_IN_HOVER = 14
_MARKED_POINTS = 40


@dataclass(frozen=True)
class _Row:
    """One quantity of all runs, in the one unit that it is drawn in."""

    overlay: Overlay
    place: int  # from the top
    name: str
    title: str  # with the unit
    per: float  # what a recorded value is divided by

    @property
    def axis(self) -> str:
        """Plotly's axes are called y, y2, y3 and so on."""
        return "y" if self.place == 0 else f"y{self.place + 1}"

    def drawn(self, values: Sequence[float]) -> list[float | None]:
        """Values as they are drawn; what is not finite breaks the line."""
        return [None if value is None else value / self.per for value in drawables(values)]


def over_time_figures(rows_of: Mapping[str, Sequence[Overlay]]) -> dict[str, Figure]:
    """A figure for each kind that was recorded at all, `memory` and `devices`."""
    return {kind: over_time_figure(rows) for kind, rows in rows_of.items() if any(map(_is_seen, rows))}


def over_time_figure(overlays: Sequence[Overlay]) -> Figure:
    """The rows, the first one on top, where any was recorded.

    Each trace's `meta` tells its `place` and, as its `part`, its quantity with the unit.
    """
    rows = [_row(seen, place) for place, seen in enumerate(filter(_is_seen, overlays))]
    num_lines = len(rows[0].overlay.lines)
    shape = layout(
        x_title=axis_title(Axis.WALL),
        y_title="",
        caption=_caption(rows),
        alternative="; ".join(_in_words(row) for row in rows),
        height=_EDGES_PX + _ROW_PX.get(len(rows), _ROW_OF_MANY_PX) * len(rows),
        showlegend=1 < num_lines <= _MOST_IN_HOVER,
        hovermode="x unified" if num_lines <= _MOST_IN_HOVER else "closest",
        annotations=[_title(row, len(rows)) for row in rows],
    )
    for row in rows:
        shape[row.axis.replace("y", "yaxis")] = _axis(row, len(rows))
    shape["xaxis"] |= {"anchor": rows[-1].axis}
    data = [trace for row in rows for line in row.overlay.lines for trace in _traces(line, row)]
    return {"data": data, "layout": shape}


def _is_seen(overlay: Overlay) -> bool:
    return any(line.x for line in overlay.lines)


def _row(overlay: Overlay, place: int) -> _Row:
    name, unit = str(_TITLES[overlay.view.series]), unit_of(overlay.view.series)
    if unit != "bytes":
        return _Row(overlay, place, name, titled(name, unit), 1)
    known = (value for line in overlay.lines for value in (*line.y, *line.high) if math.isfinite(value))
    per, unit = (2**30, "GiB") if max(known, default=0) >= 2**30 else (2**20, "MiB")
    return _Row(overlay, place, name, titled(name, unit), per)


def _axis(row: _Row, num_rows: int) -> Figure:
    return {
        "domain": _domain(row, num_rows),
        "automargin": True,
        "zeroline": False,
        "rangemode": "tozero",
        "nticks": 5,
    }


def _domain(row: _Row, num_rows: int) -> list[float]:
    top = 1 - (row.place + _GAP) / num_rows
    return [round(top - (1 - _GAP) / num_rows, 4), round(top, 4)]


def _title(row: _Row, num_rows: int) -> Figure:
    at = {"x": 0, "xref": "paper", "xanchor": "left", "y": _domain(row, num_rows)[1], "yref": "paper"}
    return at | {"yanchor": "bottom", "text": row.title, "showarrow": False}


def _traces(line: Line, row: _Row) -> list[Figure]:
    """The line, with its band behind it where it is a group's."""
    if not line.x:
        return []
    place = line.column.place
    main = _trace(line, line.y, row, row.title) | {
        "mode": "lines+markers" if len(line.x) <= _MARKED_POINTS else "lines",
        "line": {"color": colour_of(place), "dash": dash_of(place), "width": 1.6},
        "marker": {"color": colour_of(place), "size": 4},
        "showlegend": row.place == 0,
        "hovertemplate": f"%{{y:.4g}}<extra>{shortened(line.column.label)}</extra>",
    }
    if not line.low:
        return [main]
    quiet = {"mode": "lines", "showlegend": False, "hoverinfo": "skip", "line": {"width": 0, "color": colour_of(place)}}
    low = _trace(line, line.low, row, f"{row.title}, low") | quiet
    high = _trace(line, line.high, row, f"{row.title}, high") | quiet
    return [low, high | {"fill": "tonexty", "fillcolor": pale(place)}, main]


def _trace(line: Line, values: Sequence[float], row: _Row, part: str) -> Figure:
    return {
        "type": "scatter",
        "name": line.column.label,
        "legendgroup": str(line.column.job_ids),
        "x": drawables(line.x),
        "y": row.drawn(values),
        "yaxis": row.axis,
        "connectgaps": False,
        "meta": {"place": line.column.place, "part": part},
    }


def _caption(rows: Sequence[_Row]) -> str:
    view = rows[0].overlay.view
    parts = [gettext("Sampled once a second while the runs train; seconds since the first step.")]
    parts += [band_in_words(view.band)] if view.group else []
    thinned = {pk: None for row in rows for line in row.overlay.lines for pk in line.thinned_jobs}
    parts += [lost_points_in_words(list(thinned))] if thinned else []
    return " ".join([*parts, *_lacking(rows)])


def _lacking(rows: Sequence[_Row]) -> list[str]:
    """Which runs did not record what others did; in one sentence where that is the same for every quantity."""
    lacking = [(row.name, jobs_in_words(list(row.overlay.notes))) for row in rows if row.overlay.notes]
    if len(rows) > 1 and len(lacking) == len(rows) and len({jobs for _name, jobs in lacking}) == 1:
        return [gettext("Not recorded by %(jobs)s.") % {"jobs": lacking[0][1]}]
    return [
        gettext("%(quantity)s: not recorded by %(jobs)s.") % {"quantity": name, "jobs": jobs} for name, jobs in lacking
    ]


def _in_words(row: _Row) -> str:
    """A row in words: how high each line went."""
    peaks = [
        gettext("%(name)s up to %(value)s") % {"name": line.column.label, "value": f"{max(known):.4g}"}
        for line in row.overlay.lines
        if (known := [value for value in row.drawn(line.y) if value is not None])
    ]
    return f"{row.title}: " + ", ".join(peaks[:_MOST_IN_HOVER])
