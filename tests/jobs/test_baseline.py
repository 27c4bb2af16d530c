"""Figures against a baseline's: difference, ratio, verdict."""

import math
from collections.abc import Sequence

import pytest

from jobs.contract.metrics import Better, Summary
from jobs.contract.states import Outcome
from jobs.models import Job, User
from jobs.selectors.baseline import Cell, paired
from jobs.selectors.compared import Compared, compare_columns
from jobs.statistics import Band, Verdict
from tests.jobs.factories import make_ended_job, make_spec

pytestmark = pytest.mark.django_db


def run(owner: User, step_time_ms: float | None, seed: int = 0, precision: str = "fp32", **summary: object) -> Job:
    return make_ended_job(
        owner,
        spec=make_spec(seed=seed, precision=precision),
        summary={"steady_step_time_ms": step_time_ms} | summary,
    )


def held(jobs: Sequence[Job], group: str = "", baseline: Job | None = None, band: Band = Band.RANGE) -> Compared:
    pinned = (baseline or jobs[0]).pk
    return compare_columns(jobs, group=group, legend="", baseline=pinned, band=band)


def cells(compared: Compared, name: str = "steady_step_time_ms") -> list[Cell]:
    return compared.by_name[name].cells


def test_difference_and_ratio_to_the_pinned_run(alice: User) -> None:
    base, fast, slow = run(alice, 10.0), run(alice, 8.0), run(alice, 12.5)
    own, faster, slower = cells(held([base, fast, slow]))
    assert (own.delta, own.ratio, own.verdict, own.is_baseline) == (None, None, None, True)
    assert (faster.delta, faster.ratio, faster.is_better) == (-2.0, 0.8, True)
    assert (slower.delta, slower.ratio, slower.is_better) == (2.5, 1.25, False)
    assert faster.verdict is Verdict.TOO_FEW, "one run each is no evidence"
    assert [cell.is_best for cell in (own, faster, slower)] == [False, True, False]


def test_more_is_better_where_the_figure_says_so_and_neither_where_it_only_describes(alice: User) -> None:
    jobs = [run(alice, 10.0, samples_per_s=100.0, num_steps=10), run(alice, 10.0, samples_per_s=200.0, num_steps=20)]
    compared = held(jobs)
    assert cells(compared, "samples_per_s")[1].is_better is True
    assert (cells(compared, "num_steps")[1].delta, cells(compared, "num_steps")[1].is_better) == (10, None)
    assert cells(compared)[1].is_better is None, "equal values are neither better nor worse"


@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_what_was_not_measured_is_held_against_nothing(alice: User, value: float | None) -> None:
    base, odd = run(alice, 10.0), run(alice, value)
    assert [cell.delta for cell in cells(held([base, odd]))] == [None, None]
    assert [cell.delta for cell in cells(held([base, odd], baseline=odd))] == [None, None]


def test_a_ratio_to_zero_does_not_exist(alice: User) -> None:
    jobs = [run(alice, 10.0, num_skipped_steps=0), run(alice, 10.0, num_skipped_steps=3)]
    cell = cells(held(jobs), "num_skipped_steps")[1]
    assert (cell.delta, cell.ratio, cell.is_better) == (3, None, False)


def test_without_a_baseline_nothing_is_held_against_anything(alice: User) -> None:
    jobs = [run(alice, 10.0), run(alice, 8.0)]
    compared = compare_columns(jobs, group="", legend="", baseline=None, band=Band.RANGE)
    assert [cell.delta for cell in cells(compared)] == [None, None]
    assert compared.baseline is None


def groups(owner: User, ratios: Sequence[float]) -> list[Job]:
    """Repeats in fp32 of very different speeds, and in bf16-mixed so many times as slow, paired by their seeds."""
    times = [10.0, 20.0, 15.0, 40.0, 25.0]
    plain = [run(owner, time, seed) for seed, time in enumerate(times)]
    short = [run(owner, times[seed] * ratio, seed, "bf16-mixed") for seed, ratio in reversed(list(enumerate(ratios)))]
    return [*plain, *short]


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ([0.8, 0.81, 0.79, 0.8, 0.8], Verdict.BETTER),
        ([1.25, 1.26, 1.24, 1.25, 1.3], Verdict.WORSE),
        ([1.001, 0.999, 1.002, 0.998, 1.0], Verdict.TIE),
        ([1.3, 0.7, 1.1, 0.9, 1.0], Verdict.TOO_NOISY),
    ],
)
def test_repeats_paired_by_seed_give_a_verdict(alice: User, ratios: list[float], verdict: Verdict) -> None:
    compared = held(groups(alice, ratios), group="precision")
    own, other = cells(compared)
    assert (own.is_baseline, other.verdict) == (True, verdict)
    assert other.interval
    assert other.interval.n == 5
    assert other.ratio == pytest.approx(math.prod(ratios) ** (1 / 5))


def test_a_group_shows_mean_and_spread(alice: User) -> None:
    [cell] = cells(held([run(alice, 10.0), run(alice, 14.0)], group="precision"))
    assert cell.value == 12
    assert cell.spread
    assert (cell.spread.low, cell.spread.high, cell.spread.n) == (10, 14, 2)


def test_a_group_tells_words_only_where_all_agree(alice: User) -> None:
    jobs = [run(alice, 1.0, observed_dtype=name, is_steady=True) for name in ("float32", "bfloat16")]
    compared = held(jobs, group="model")
    assert cells(compared, "observed_dtype")[0].value is None
    assert cells(compared, "is_steady")[0].value is True


def test_pairs_share_a_seed_and_come_in_the_order_of_their_jobs(alice: User) -> None:
    one = [run(alice, 1.0, seed) for seed in (1, 1, 2, 3)]
    other = [run(alice, 1.0, seed) for seed in (2, 1, 1, 1, 4)]
    assert paired(one, other) == [(one[0], other[1]), (one[1], other[2]), (one[2], other[0])]
    assert paired(one[:1], other[:1]) == [(one[0], other[0])], "two single runs stand side by side"


def test_groups_without_a_seed_in_common_have_no_verdict(alice: User) -> None:
    jobs = [run(alice, 10.0 + seed, seed, "fp32" if seed < 3 else "bf16-mixed") for seed in range(6)]
    cell = cells(held(jobs, group="precision"))[1]
    assert (cell.verdict, cell.delta) == (Verdict.TOO_FEW, 3.0)


def test_a_repeat_that_measured_nothing_takes_nobodys_place(alice: User) -> None:
    lost = make_ended_job(alice, spec=make_spec(seed=0), outcome=Outcome.LOST, summary={"steady_step_time_ms": None})
    cell = cells(held([lost, *groups(alice, [0.8, 0.81, 0.79, 0.8, 0.8])], group="precision"))[1]
    assert cell.interval
    assert (cell.interval.n, cell.verdict) == (5, Verdict.BETTER)


def test_any_run_of_a_group_pins_the_group(alice: User) -> None:
    jobs = groups(alice, [1.0] * 5)
    compared = held(jobs, group="precision", baseline=jobs[-1])
    assert compared.baseline is compared.columns[1]


def test_a_failed_run_is_compared_in_what_it_measured(alice: User) -> None:
    base = run(alice, 10.0)
    failed = make_ended_job(alice, outcome=Outcome.FAILED, summary={"steady_step_time_ms": 5.0})
    assert cells(held([base, failed]))[1].ratio == 0.5


def test_the_contract_says_which_way_every_figure_is_better() -> None:
    directions = {name: field.json_schema_extra["better"] for name, field in Summary.model_fields.items()}  # type: ignore[index,call-overload]
    assert set(directions.values()) == {better.value for better in Better}
