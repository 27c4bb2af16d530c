"""Every figure is held against Plotly's own classes, which refuse what they do not know."""

import json
import math
from typing import Any

import plotly.graph_objects as go
import pytest

from jobs.figures import bar_figure, overlay_figure, series_title
from jobs.selectors.columns import Column
from jobs.selectors.overlay import Axis, Line, Overlay, View
from jobs.smoothing import Smoothing
from jobs.statistics import Band, Spread


def line(name: str = "a", y: list[float] | None = None, place: int = 0, **more: Any) -> Line:
    values = [3.0, 2.0, 1.0] if y is None else y
    return Line(Column(name, [], place), list(range(1, len(values) + 1)), values, **more)


def curve_figure(lines: list[Line], view: View | None = None, **logs: bool) -> dict[str, Any]:
    return overlay_figure(Overlay(view or View(), lines, {}), **logs)


def valid(figure: dict[str, Any]) -> dict[str, Any]:
    """The figure after Plotly has accepted it and JSON has carried it."""
    go.Figure(figure)
    return json.loads(json.dumps(figure, allow_nan=False))


@pytest.mark.parametrize(
    ("axis", "title", "kind"),
    [
        (Axis.STEP, "Optimizer step", "linear"),
        (Axis.WALL, "Wall time since the first step (s)", "linear"),
        (Axis.CLOCK, "Time of day (UTC)", "date"),
        ("eval_loss", "Evaluation loss", "linear"),
    ],
)
def test_a_curve_says_what_it_runs_over(axis: str, title: str, kind: str) -> None:
    layout = valid(curve_figure([line()], View(x=axis)))["layout"]
    assert (layout["xaxis"]["title"]["text"], layout["xaxis"]["type"]) == (title, kind)
    assert layout["yaxis"]["title"]["text"] == "Training loss"
    assert title in layout["meta"]["caption"]


def test_axes_may_be_logarithmic() -> None:
    layout = valid(curve_figure([line()], x_log=True, y_log=True))["layout"]
    assert (layout["xaxis"]["type"], layout["yaxis"]["type"]) == ("log", "log")


def test_what_is_not_finite_breaks_the_line() -> None:
    drawn = valid(curve_figure([line(y=[1.0, math.nan, math.inf, -math.inf, 2.0])]))["data"][0]
    assert drawn["y"] == [1.0, None, None, None, 2.0]
    assert drawn["connectgaps"] is False


def test_several_curves_share_one_hover_and_many_tell_their_values_in_the_legend() -> None:
    few, many = (valid(curve_figure([line(str(n), place=n) for n in range(count)])) for count in (2, 50))
    assert (few["layout"]["hovermode"], many["layout"]["hovermode"]) == ("x unified", "x")
    assert {trace["hoverinfo"] for trace in many["data"]} == {"none"}


@pytest.mark.parametrize("lines", [[], [line(y=[])], [line(y=[math.nan])]])
def test_nothing_to_draw_is_a_valid_figure(lines: list[Line]) -> None:
    valid(curve_figure(lines))


def test_a_curve_of_one_point_is_seen() -> None:
    assert "markers" in curve_figure([line(y=[1.0])])["data"][0]["mode"]


def test_a_band_lies_behind_its_mean_and_the_raw_line_behind_the_smoothed() -> None:
    banded = line("mean", low=[2.0, 1.0, 0.0], high=[4.0, 3.0, 2.0])
    drawn = valid(curve_figure([banded, line("other", place=1)], View(group="precision", band=Band.INTERVAL)))
    assert [trace["meta"]["part"] for trace in drawn["data"]] == ["low", "high", "line", "line"]
    assert drawn["data"][1]["fill"] == "tonexty"
    assert "95 % t-interval" in drawn["layout"]["meta"]["caption"]
    smoothed = line("s", raw_x=[1, 2, 3], raw_y=[9.0, 1.0, 5.0])
    drawn = valid(curve_figure([smoothed], View(smoothing=Smoothing.EXPONENTIAL, amount=0.9)))
    assert [(trace["meta"]["part"], trace.get("opacity", 1) < 0.5) for trace in drawn["data"]] == [
        ("raw", True),
        ("line", False),
    ]
    assert "weight of the past 0.9" in drawn["layout"]["meta"]["caption"]


def test_a_figure_says_in_words_where_its_lines_end_and_what_it_left_out() -> None:
    told = curve_figure([line("fast", num_points_total=5000), line("slow", y=[5.0, math.nan], place=1)])["layout"][
        "meta"
    ]
    assert told["alternative"] == "Training loss: 2 lines. fast ends at 1; slow ends at 5"
    assert "5 of 5,000 points drawn" in told["caption"]


def test_seams_are_drawn_where_an_attempt_went_on() -> None:
    [seam] = valid(curve_figure([line(seams=[2.0])]))["layout"]["shapes"]
    assert (seam["x0"], seam["x1"], seam["yref"]) == (2.0, 2.0, "paper")


def test_zoom_survives_a_live_update() -> None:
    before, after = curve_figure([line(y=[3.0])]), curve_figure([line(y=[3.0, 2.0])])
    assert before["layout"]["uirevision"] == after["layout"]["uirevision"]


@pytest.mark.parametrize("figure", [curve_figure([line(), line("b")]), bar_figure(["a"], [1.0], title="Step time")])
def test_figures_leave_ground_and_text_to_the_theme(figure: dict[str, Any]) -> None:
    valid(figure)
    assert figure["layout"]["paper_bgcolor"] == figure["layout"]["plot_bgcolor"] == "rgba(0,0,0,0)"
    assert "font" not in json.dumps(figure["layout"])


def test_bytes_become_mib_or_gib_on_screen() -> None:
    small = valid(bar_figure(["a", "b"], [2**20, 3 * 2**20], title="Peak memory", unit="bytes"))
    large = valid(bar_figure(["a", "b"], [2**29, 2**31], title="Peak memory", unit="bytes"))
    assert small["data"][0]["y"] == [1.0, 3.0]
    assert small["layout"]["yaxis"]["title"]["text"] == "Peak memory (MiB)"
    assert large["data"][0]["y"] == [0.5, 2.0]
    assert large["layout"]["yaxis"]["title"]["text"] == "Peak memory (GiB)"


def test_of_very_many_bars_some_are_named() -> None:
    names = [f"#{number}" for number in range(200)]
    axis = valid(bar_figure(names, [1.0] * 200, title="Step time"))["layout"]["xaxis"]
    assert axis["tickvals"] == list(range(0, 200, 7))
    assert axis["ticktext"] == names[::7]


def test_a_missing_value_has_no_bar() -> None:
    bars = valid(bar_figure(["a", "b"], [None, math.nan], title="Step time", unit="ms"))["data"][0]
    assert bars["y"] == [None, None]
    assert bars["text"] == ["", ""]


def test_jobs_of_the_same_name_have_a_bar_each() -> None:
    figure = valid(bar_figure(["same", "same"], [1.0, 2.0], title="Step time", unit="ms"))
    assert figure["data"][0]["x"] == [0, 1]
    assert figure["layout"]["xaxis"]["ticktext"] == ["same", "same"]


def test_bars_have_the_colours_of_the_curves() -> None:
    lines = curve_figure([line("a"), line("b", place=1)])["data"]
    bars = bar_figure(["a", "b"], [1.0, 2.0], title="Step time")["data"][0]
    assert bars["marker"]["color"] == [trace["line"]["color"] for trace in lines]


def test_bars_of_repeats_have_their_band_in_the_unit_that_is_shown() -> None:
    spread = Spread(mean=2.0 * 2**30, low=1.0 * 2**30, high=4.0 * 2**30, n=3)
    bars = valid(bar_figure(["a", "b"], [2.0 * 2**30, None], title="Memory", unit="bytes", spreads=[spread, None]))
    assert bars["data"][0]["error_y"]["array"] == [2.0, 0]
    assert bars["data"][0]["error_y"]["arrayminus"] == [1.0, 0]


def test_a_series_without_words_keeps_its_name() -> None:
    assert series_title("grad_norm_of_something") == "grad_norm_of_something"
