"""What a study found as figures: factors with their intervals, every run, losses against the margin, memory."""

from collections.abc import Sequence

from django.utils.translation import gettext

from jobs.contract.states import Outcome
from jobs.figures.style import Figure, colour_of, in_lines, layout, on_screen, titled
from jobs.selectors.studies import StudyRow, StudyView
from jobs.selectors.study_words import in_short
from jobs.statistics import RatioInterval, is_told

_FEW = 12
_LEAST_PX = 260
_FRAME_PX, _LINE_PX, _GAP_PX = (
    70,
    15,
    10,
)  # the axis below with its title, a line of a label, what is between two labels


def study_figures(view: StudyView) -> dict[str, Figure]:
    """Every figure that has something to show, by its name, the plan's first configuration first."""
    rows = sorted(view.rows, key=lambda row: row.configuration.place)
    names = [in_short(row) for row in rows]
    memory = [row.peak_bytes for row in rows]
    found = {
        "speed": _speed_figure(rows, names),
        "runs": _runs_figure(rows, names),
        "loss": _loss_figure(rows, names, view.margin),
        "memory": _memory_figure(names, memory) if any(memory) else None,
    }
    return {name: figure for name, figure in found.items() if figure}


def _memory_figure(names: Sequence[str], memory: Sequence[float | None]) -> Figure:
    """The peak of each as a bar, the median over its repeats."""
    shown, unit = on_screen(memory, "bytes")
    told = [(place, value) for place, value in enumerate(shown) if value is not None]
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": [value for _place, value in told],
        "y": [place for place, _value in told],
        "text": [f"{value:.4g}" for _place, value in told],
        "textangle": 0,
        "hovertext": [names[place] for place, _value in told],
        "hovertemplate": f"%{{hovertext}}: %{{x:.5g}} {unit}<extra></extra>",
        "marker": {"color": [colour_of(place) for place, _value in told]},
        "meta": {"places": [place for place, _value in told]},
    }
    words = "; ".join(f"{names[place]} {value:.4g}" for place, value in told)
    caption = gettext("The median over the repeats that ended well; of a GPU what tensors took of it (allocated).")
    shape = _across(names, titled(gettext("Peak memory"), unit), caption, words)
    shape["bargap"] = 0.35
    return {"data": [bars], "layout": shape}


def _speed_figure(rows: Sequence[StudyRow], names: Sequence[str]) -> Figure | None:
    """How many times faster than the baseline each is, with the 95 % interval; 1 is the baseline.

    An interval that reaches too far to say anything is not drawn: the others could not be seen beside it.
    """
    told = [(place, 1 / row.time.ratio, _drawn(row.time)) for place, row in enumerate(rows) if row.time]
    if not told:
        return None
    points = {
        "type": "scatter",
        "mode": "markers",
        "x": [factor for _place, factor, _likely in told],
        "y": [place for place, _factor, _likely in told],
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [None if likely is None else 1 / likely[0] - factor for _place, factor, likely in told],
            "arrayminus": [None if likely is None else factor - 1 / likely[1] for _place, factor, likely in told],
        },
        "text": [names[place] for place, _factor, _likely in told],
        "hovertemplate": "%{text}: %{x:.3f}<extra></extra>",
        "marker": {
            "size": 9,
            "color": colour_of(0),
            "symbol": ["circle-open" if likely is None else "circle" for _place, _factor, likely in told],
        },
        "meta": {"place": 0},
    }
    words = "; ".join(f"{names[place]} {factor:.3g}" for place, factor, _likely in told)
    caption = gettext("Than the baseline, which is 1; with the 95 % interval over paired repeats.")
    if any(likely is None for _place, _factor, likely in told):
        caption += " " + gettext("An open circle is not known within a factor of two yet: more repeats are needed.")
    shape = _across(names, gettext("Times faster"), caption, words)
    shape["shapes"] = [_upright(1.0)]
    return {"data": [points], "layout": shape}


def _drawn(time: RatioInterval) -> tuple[float, float] | None:
    return time.likely if is_told(*time.likely) else None


def _runs_figure(rows: Sequence[StudyRow], names: Sequence[str]) -> Figure | None:
    """The step time of every run that counts."""
    traces = []
    for place, row in enumerate(rows):
        times = _times_ms(row)
        if times:
            traces.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": names[place],
                    "x": times,
                    "y": [place] * len(times),
                    "hovertemplate": f"{names[place]}: %{{x:.4g}} ms<extra></extra>",
                    "marker": {"size": 8, "opacity": 0.75, "color": colour_of(place)},
                    "meta": {"place": place},
                }
            )
    if not traces:
        return None
    words = "; ".join(f"{trace['name']}: " + ", ".join(f"{x:.4g}" for x in trace["x"]) for trace in traces)
    caption = gettext("Steady step time of every run that ended well, a point for each.")
    return {"data": traces, "layout": _across(names, gettext("Step time (ms)"), caption, words)}


def _loss_figure(rows: Sequence[StudyRow], names: Sequence[str], margin: float | None) -> Figure | None:
    """The mean difference of the evaluation loss to the baseline with its 90 % interval, and the margin of equality."""
    told = [(place, row.loss) for place, row in enumerate(rows) if row.loss and row.loss.n > 1]
    if not told or not margin:
        return None
    points = {
        "type": "scatter",
        "mode": "markers",
        "x": [loss.difference for _place, loss in told],
        "y": [place for place, _loss in told],
        "error_x": {"type": "data", "array": [loss.high - loss.difference for _place, loss in told]},
        "text": [names[place] for place, _loss in told],
        "hovertemplate": "%{text}: %{x:.4g}<extra></extra>",
        "marker": {"size": 9, "color": colour_of(2)},
        "meta": {"place": 2},
    }
    caption = gettext("To the baseline's; equal is what lies between the dotted lines with all of its 90 % interval.")
    words = "; ".join(f"{names[place]} {loss.difference:.3g}" for place, loss in told)
    shape = _across(names, gettext("Difference of the loss"), caption, words)
    shape["shapes"] = [_upright(-margin), _upright(margin)]
    return {"data": [points], "layout": shape}


def _times_ms(row: StudyRow) -> list[float]:
    ended = [job.last_attempt for job in row.jobs if job.outcome == Outcome.SUCCEEDED]
    return [run.steady_step_time_ms for run in ended if run and run.steady_step_time_ms and run.resumed_at_step is None]


def _across(names: Sequence[str], x_title: str, caption: str, alternative: str) -> Figure:
    """A layout with a line for each configuration, the first one at the top."""
    shape = layout(
        x_title=x_title,
        y_title="",
        caption=caption,
        alternative=f"{x_title}: {alternative}",
        showlegend=False,
        hovermode="closest",
    )
    labels = [in_lines(name, most=_most_lines(len(names))) for name in names]
    ticks = {"tickvals": list(range(len(names))), "ticktext": labels, "range": [len(names) - 0.5, -0.5]}
    shape["yaxis"] |= ticks
    shape["height"] = _height_px(labels)
    return shape


def _most_lines(num_labels: int) -> int:
    """Whole names for a few; a chart of many would not end."""
    return 3 if num_labels <= _FEW else 2 if num_labels <= 2 * _FEW else 1


def _height_px(labels: Sequence[str]) -> int:
    """So high that no label touches the next one."""
    num_lines = max((label.count("<br>") + 1 for label in labels), default=1)
    return max(_LEAST_PX, _FRAME_PX + len(labels) * (_GAP_PX + _LINE_PX * num_lines))


def _upright(x: float) -> Figure:
    line = {"dash": "dot", "width": 1.2, "color": "#7b8698"}
    return {"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper", "line": line}
