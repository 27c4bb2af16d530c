"""What a study found as figures: factors with their intervals, every run, losses against the margin, memory."""

from collections.abc import Sequence

from django.utils.translation import gettext

from jobs.contract.states import Outcome
from jobs.figures.bars import bar_figure
from jobs.figures.style import Figure, colour_of, layout, shortened
from jobs.selectors.studies import StudyRow, StudyView
from jobs.selectors.study_words import in_short


def study_figures(view: StudyView) -> dict[str, Figure]:
    """Every figure that has something to show, by its name, the plan's first configuration first."""
    rows = sorted(view.rows, key=lambda row: row.configuration.place)
    names = [shortened(in_short(row), 24) for row in rows]
    memory = [row.peak_bytes for row in rows]
    found = {
        "speed": _speed_figure(rows, names),
        "runs": _runs_figure(rows, names),
        "loss": _loss_figure(rows, names, view.margin),
        "memory": _memory_figure(names, memory) if any(memory) else None,
    }
    return {name: figure for name, figure in found.items() if figure}


def _memory_figure(names: Sequence[str], memory: Sequence[float | None]) -> Figure:
    """The peak of each, the median over its repeats."""
    figure = bar_figure(names, memory, title=gettext("Peak memory"), unit="bytes")
    figure["layout"]["meta"]["caption"] = gettext("The median over the repeats that ended well.")
    return figure


def _speed_figure(rows: Sequence[StudyRow], names: Sequence[str]) -> Figure | None:
    """How many times faster than the baseline each is, with the 95 % interval; 1 is the baseline."""
    told = [(place, 1 / row.time.ratio, row.time.likely) for place, row in enumerate(rows) if row.time]
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
            "array": [1 / low - factor for _place, factor, (low, _high) in told],
            "arrayminus": [factor - 1 / high for _place, factor, (_low, high) in told],
        },
        "text": [names[place] for place, _factor, _likely in told],
        "hovertemplate": "%{text}: %{x:.3f}<extra></extra>",
        "marker": {"size": 9, "color": colour_of(0)},
        "meta": {"place": 0},
    }
    words = "; ".join(f"{names[place]} {factor:.3g}" for place, factor, _likely in told)
    title = gettext("Times faster")
    shape = _across(
        names, title, gettext("Than the baseline, which is 1; with the 95 % interval over paired repeats."), words
    )
    shape["shapes"] = [_upright(1.0)]
    return {"data": [points], "layout": shape}


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
    ticks = {"tickvals": list(range(len(names))), "ticktext": list(names), "range": [len(names) - 0.5, -0.5]}
    shape["yaxis"] |= ticks
    return shape


def _upright(x: float) -> Figure:
    line = {"dash": "dot", "width": 1.2, "color": "#7b8698"}
    return {"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper", "line": line}
