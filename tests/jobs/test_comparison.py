import math

import pytest

from jobs.contract.metrics import Better
from jobs.contract.states import Outcome
from jobs.models import Job, User
from jobs.selectors.comparison import Comparison, compare, spec_rows
from jobs.selectors.jobs import visible_jobs
from tests.jobs.factories import make_ended_job, make_job, make_spec

pytestmark = pytest.mark.django_db


@pytest.fixture
def pair(alice: User) -> list[Job]:
    plain = make_ended_job(alice, spec=make_spec(seed=1), summary={"steady_step_time_ms": 10.0, "samples_per_s": 100.0})
    fast = make_ended_job(
        alice,
        spec=make_spec(seed=2, precision="bf16-mixed"),
        summary={"steady_step_time_ms": 5.0, "samples_per_s": 200.0, "num_steps": 100},
        outcome=Outcome.SUCCEEDED,
    )
    return [plain, fast]


def fields(comparison: Comparison) -> list[str]:
    return [row.field for row in comparison.diff]


def test_only_the_fields_that_differ_are_shown_in_the_specs_order(pair: list[Job]) -> None:
    comparison = compare(pair)
    assert [(row.field, row.label, row.values) for row in comparison.diff] == [
        ("precision", "Precision", ["fp32", "bf16-mixed"]),
        ("seed", "Seed", [1, 2]),
    ]
    assert comparison.circumstances == []


def test_the_resolved_spec_counts_where_it_is_known(alice: User) -> None:
    auto, cpu = make_ended_job(alice), make_ended_job(alice, spec=make_spec(device="cpu"))
    assert fields(compare([auto, cpu])) == []
    assert fields(compare([make_job(alice), cpu])) == ["device"]


def test_a_spec_stored_before_a_field_existed_counts_with_its_default(pair: list[Job]) -> None:
    old = make_job()
    del old.spec["precision"]
    assert not any(row.differs for row in spec_rows([old, make_job()]))


def test_state_device_and_versions_are_shown_where_they_differ(alice: User, pair: list[Job]) -> None:
    other = make_ended_job(
        alice,
        outcome=Outcome.FAILED,
        started={"device_name": "Slow CPU", "versions": {"torch": "2.12.0", "python": "3.11.7", "engine": "0.1.0"}},
    )
    rows = {row.field: row.values for row in compare([pair[0], other]).circumstances}
    assert rows == {
        "state": ["succeeded", "failed"],
        "outcome": ["succeeded", "failed"],
        "device_name": ["Fast CPU", "Slow CPU"],
        "versions.torch": ["2.13.0", "2.12.0"],
    }


def test_each_metric_knows_its_best_job(pair: list[Job]) -> None:
    comparison = compare(pair)
    best = {row.name: (row.better, row.best) for row in comparison.metrics}
    assert best["steady_step_time_ms"] == (Better.LOWER, 1)
    assert best["samples_per_s"] == (Better.HIGHER, 1)
    assert best["final_eval_loss"] == (Better.LOWER, None), "equal values have no best"
    assert best["num_steps"] == (Better.NEITHER, None)


def test_missing_and_infinite_values_are_never_best(alice: User) -> None:
    jobs = [
        make_ended_job(alice, summary={"final_eval_loss": value}) for value in (math.nan, None, 2.0, 3.0, -math.inf)
    ]
    row = compare(jobs).metric("final_eval_loss")
    assert row is not None
    assert (row.values[1], row.best) == (None, 2)


def test_what_nobody_measured_is_left_out(pair: list[Job]) -> None:
    assert compare(pair).metric("eval_accuracy") is None


def test_labels_and_units_come_from_the_contract(pair: list[Job]) -> None:
    row = compare(pair).metric("steady_step_time_ms")
    assert row is not None
    assert (row.label, row.unit) == ("Step time", "ms")


def test_many_jobs_cost_one_query(alice: User, django_assert_num_queries: object) -> None:
    for _number in range(5):
        make_ended_job(alice)
    with django_assert_num_queries(1):  # type: ignore[operator]
        compare(list(visible_jobs(alice)))


def test_comparing_nothing_is_empty() -> None:
    comparison = compare([])
    assert (comparison.diff, comparison.metrics) == ([], [])


def test_every_option_is_there_for_those_who_ask_and_one_run_differs_from_nothing(pair: list[Job]) -> None:
    alone = compare(pair[:1])
    assert alone.diff == []
    assert {row.field: row.values for row in alone.options}["precision"] == ["fp32"]
    assert alone.metric("steady_step_time_ms") is not None
