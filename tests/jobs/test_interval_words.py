"""An interval that reaches too far is not written down as if it told something, in sentences and in cells alike."""

import re
from types import SimpleNamespace

import pytest

from jobs.ablation import Factors, take_apart
from jobs.claim_verdict import judge_promise
from jobs.contract.claims import Promise, Quantity
from jobs.contract.plan import Axis, StudyPlan
from jobs.contract.states import Outcome
from jobs.figures.study import study_figures
from jobs.models import Queue, User
from jobs.selectors.ablation import Waterfall
from jobs.selectors.ablation_words import factor_words, together_words
from jobs.selectors.baseline import Cell
from jobs.selectors.board_words import ratio_words
from jobs.selectors.claim_words import measured_words
from jobs.selectors.leaderboard import METRICS, cell_of
from jobs.selectors.studies import view_study
from jobs.selectors.study_words import row_words
from jobs.services.finish import finish_attempt
from jobs.services.studies import create_study
from jobs.statistics import Band, is_told, ratio_interval, spread_of
from jobs.templatetags.boards import board_cell
from jobs.templatetags.pitwall import spread
from tests.jobs.factories import make_spec, make_summary, make_worker, start

WIDE, NARROW = [0.5, 1.5], [0.5, 0.51]
NEEDS_MORE = "more repeats are needed"


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [(0.5, 2.0, True), (0.49, 2.0, False), (30.0, 119.0, True), (30.0, 121.0, False), (-1.0, 9.0, True)],
)
def test_an_interval_says_something_within_a_factor_of_two_of_its_middle(low: float, high: float, told: bool) -> None:
    assert is_told(low, high) is told


def waterfall_of(noise: float) -> Waterfall:
    """Two options over two seeds; the second seed's run of both together is off by the noise."""
    factors = take_apart(
        {0: 10.0, 1: 10.0}, [{0: 8.0, 1: 8.0}, {0: 5.0, 1: 5.0}], {0: 4.0, 1: 4.0 * noise}, [None, None]
    )
    return Waterfall("time", 10.0, 4.0, factors, [], [])


def test_an_ablation_of_two_noisy_repeats_asks_for_more_of_them() -> None:
    noisy: Factors = waterfall_of(2.0).factors
    assert noisy.interaction
    assert noisy.interaction.half_width > 37, "what would read as more than ± 3700 %"
    assert together_words(waterfall_of(2.0)).endswith("to tell whether they interact (more repeats needed).")
    assert together_words(waterfall_of(1.05)).endswith("to tell whether they interact (± 36.3%).")
    assert factor_words(noisy.total) == "× 0.566 (more repeats needed)"
    assert factor_words(noisy.singles[0]) == "× 0.800 (0.800 to 0.800)"


@pytest.mark.parametrize("quantity", Quantity)
def test_a_claim_tells_no_interval_that_reaches_too_far(quantity: Quantity) -> None:
    promise = Promise(quantity, 1.5)
    assert NEEDS_MORE in measured_words(promise, judge_promise(promise, ratio_interval(WIDE)))
    assert "(99 % interval" in measured_words(promise, judge_promise(promise, ratio_interval([0.5, 0.501])))


def test_the_cells_of_a_board_and_of_a_comparison_do_not_either() -> None:
    metric = METRICS["steady_step_time_ms"]
    assert ">more repeats needed n=2<" in board_cell(metric, cell_of([(0, 10.0), (1, 15.0)]))
    assert re.search(r">9\.\d+–10\.\d+ n=2<", board_cell(metric, cell_of([(0, 10.0), (1, 10.1)])))
    wide, narrow = (Cell(1.0, spread_of(values, Band.INTERVAL)) for values in ([10.0, 15.0], [10.0, 10.1]))
    assert "more repeats needed" in spread("steady_step_time_ms", wide, Band.INTERVAL)
    assert "± 0.635" in spread("steady_step_time_ms", narrow, Band.INTERVAL)
    ratio = ratio_words(SimpleNamespace(ratio=ratio_interval(WIDE)))  # type: ignore[arg-type]
    assert NEEDS_MORE in ratio


@pytest.mark.django_db
def test_a_study_says_what_is_slower_but_not_by_how_much_and_draws_no_such_bar(alice: User, queue: Queue) -> None:
    axes = [Axis(field="num_threads", values=[1, 2])]
    asked = StudyPlan(base=make_spec(seed=0).model_dump(mode="json"), axes=axes, num_repeats=3)
    study = create_study(owner=alice, team=alice.teams.get(), queue=queue, plan=asked)
    for place, times_ms in enumerate([(10.0, 10.0, 10.0), (60.0, 110.0, 75.0), (20.0, 20.1, 20.2)]):
        for job in study.jobs.filter(study_place=place):
            summary = make_summary(steady_step_time_ms=times_ms[job.spec["seed"]])
            finish_attempt(start(job, make_worker()), Outcome.SUCCEEDED, summary)
    view = view_study(study)
    _baseline, wide, narrow = sorted(view.rows, key=lambda row: row.configuration.place)
    assert row_words(wide).startswith(
        "7.91 times slower (not known within a factor of two yet, more repeats are needed, n = 3)."
    )
    assert row_words(narrow).startswith("2.01 times slower (95 % interval 1.99 to 2.03, n = 3).")
    drawn = study_figures(view)["speed"]
    assert drawn["data"][0]["marker"]["symbol"] == ["circle-open", "circle"]
    assert drawn["data"][0]["error_x"]["array"][0] is None, "not even the ends of a bar of no length"
    assert "An open circle is not known within a factor of two yet" in drawn["layout"]["meta"]["caption"]
