"""Every figure is held against Plotly's own classes, which refuse what they do not know."""

import itertools
import json
import math
from typing import Any

import plotly.graph_objects as go
import pytest

from jobs.figures import (
    DASHES,
    PALETTE,
    NamedCurve,
    bar_figure,
    colour_of,
    comparison_figures,
    curve_figure,
    dash_of,
    series_title,
)
from jobs.models import User
from jobs.selectors.comparison import compare
from jobs.selectors.curves import CurveView, empty_curve
from tests.jobs.factories import make_ended_job, make_job, make_spec


def curve(name: str = "a", y: list[float] | None = None) -> NamedCurve:
    values = [3.0, 2.0, 1.0] if y is None else y
    steps = list(range(1, len(values) + 1))
    return NamedCurve(name, CurveView("train_loss", steps, [0.5 * step for step in steps], values, "full", len(values)))


def valid(figure: dict[str, Any]) -> dict[str, Any]:
    """The figure after Plotly has accepted it and JSON has carried it."""
    go.Figure(figure)
    return json.loads(json.dumps(figure, allow_nan=False))


def test_a_curve_runs_over_steps_or_over_seconds() -> None:
    steps, seconds = valid(curve_figure([curve()], "step")), valid(curve_figure([curve()], "wall_s"))
    assert steps["data"][0]["x"] == [1, 2, 3]
    assert seconds["data"][0]["x"] == [0.5, 1.0, 1.5]
    assert steps["layout"]["xaxis"]["title"]["text"] == "Optimizer step"
    assert "(s)" in seconds["layout"]["xaxis"]["title"]["text"]
    assert steps["layout"]["yaxis"]["title"]["text"] == "Training loss"


def test_what_is_not_finite_breaks_the_line() -> None:
    line = valid(curve_figure([curve(y=[1.0, math.nan, math.inf, -math.inf, 2.0])]))["data"][0]
    assert line["y"] == [1.0, None, None, None, 2.0]
    assert line["connectgaps"] is False


def test_several_curves_share_one_hover_and_have_a_legend_below() -> None:
    layout = valid(curve_figure([curve("a"), curve("b")]))["layout"]
    assert layout["hovermode"] == "x unified"
    assert (layout["showlegend"], layout["legend"]["orientation"]) == (True, "h")
    assert layout["legend"]["y"] < 0


def test_a_single_curve_has_no_legend() -> None:
    assert valid(curve_figure([curve()]))["layout"]["showlegend"] is False


@pytest.mark.parametrize("curves", [[], [NamedCurve("a", empty_curve("train_loss"))]])
def test_nothing_to_draw_is_a_valid_figure(curves: list[NamedCurve]) -> None:
    valid(curve_figure(curves))


def test_a_curve_of_one_point_is_seen() -> None:
    assert "markers" in curve_figure([curve(y=[1.0])])["data"][0]["mode"]


def test_zoom_survives_a_live_update() -> None:
    before, after = curve_figure([curve(y=[3.0])]), curve_figure([curve(y=[3.0, 2.0])])
    assert before["layout"]["uirevision"] == after["layout"]["uirevision"]


@pytest.mark.parametrize("figure", [curve_figure([curve(), curve("b")]), bar_figure(["a"], [1.0], title="Step time")])
def test_figures_leave_ground_and_text_to_the_theme(figure: dict[str, Any]) -> None:
    valid(figure)
    assert figure["layout"]["paper_bgcolor"] == figure["layout"]["plot_bgcolor"] == "rgba(0,0,0,0)"
    assert "font" not in json.dumps(figure["layout"])


def test_no_two_of_many_lines_look_alike() -> None:
    looks = [(colour_of(index), dash_of(index)) for index in range(len(PALETTE) * len(DASHES))]
    assert len(set(looks)) == len(looks)


def test_the_palettes_colours_stand_out_from_light_and_dark() -> None:
    """WCAG asks 3:1 of graphics; the ground is near white or near black."""
    for colour in PALETTE:
        assert contrast(colour, "#ffffff") > 2
        assert contrast(colour, "#14171a") > 3
    assert len(set(PALETTE)) == len(PALETTE)


def test_palette_colours_differ_from_each_other_in_lightness_or_hue() -> None:
    for one, two in itertools.combinations(PALETTE, 2):
        assert sum(abs(a - b) for a, b in zip(channels(one), channels(two), strict=True)) > 0.3


def channels(colour: str) -> list[float]:
    return [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]


def contrast(one: str, two: str) -> float:
    def luminance(colour: str) -> float:
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels(colour)]
        return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    light, dark = sorted((luminance(one), luminance(two)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_bytes_become_mib_or_gib_on_screen() -> None:
    small = valid(bar_figure(["a", "b"], [2**20, 3 * 2**20], title="Peak memory", unit="bytes"))
    large = valid(bar_figure(["a", "b"], [2**29, 2**31], title="Peak memory", unit="bytes"))
    assert small["data"][0]["y"] == [1.0, 3.0]
    assert small["layout"]["yaxis"]["title"]["text"] == "Peak memory (MiB)"
    assert large["data"][0]["y"] == [0.5, 2.0]
    assert large["layout"]["yaxis"]["title"]["text"] == "Peak memory (GiB)"


def test_a_missing_value_has_no_bar() -> None:
    bars = valid(bar_figure(["a", "b"], [None, math.nan], title="Step time", unit="ms"))["data"][0]
    assert bars["y"] == [None, None]
    assert bars["text"] == ["", ""]


def test_jobs_of_the_same_name_have_a_bar_each() -> None:
    figure = valid(bar_figure(["same", "same"], [1.0, 2.0], title="Step time", unit="ms"))
    assert figure["data"][0]["x"] == [0, 1]
    assert figure["layout"]["xaxis"]["ticktext"] == ["same", "same"]


def test_bars_have_the_colours_of_the_curves() -> None:
    lines = curve_figure([curve("a"), curve("b")])["data"]
    bars = bar_figure(["a", "b"], [1.0, 2.0], title="Step time")["data"][0]
    assert bars["marker"]["color"] == [line["line"]["color"] for line in lines]


def test_a_series_without_words_keeps_its_name() -> None:
    assert series_title("grad_norm_of_something") == "grad_norm_of_something"


def test_a_comparison_has_its_curves_and_the_bars_that_were_measured(alice: User) -> None:
    jobs = [make_ended_job(alice), make_ended_job(alice, spec=make_spec(seed=1)), make_job(alice)]
    figures = comparison_figures(compare(jobs))
    assert list(figures) == ["curve_by_step", "curve_by_wall_s", "steady_step_time_ms", "peak_rss_bytes"]
    for figure in figures.values():
        valid(figure)
    assert [line["name"] for line in figures["curve_by_step"]["data"]] == [f"#{job.pk} {job.title}" for job in jobs]
