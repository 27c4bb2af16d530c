import math

import pytest

from jobs.contract.states import Outcome
from jobs.models import User
from jobs.selectors.leaderboard import boards
from tests.jobs.factories import make_ended_job, make_job, make_spec, make_user, start

pytestmark = pytest.mark.django_db

FAST = make_spec(precision="bf16-mixed")


def test_configurations_are_ranked_by_their_median_step_time(alice: User) -> None:
    for step_time_ms in (10.0, 30.0, 11.0):
        make_ended_job(alice, summary={"steady_step_time_ms": step_time_ms})
    make_ended_job(alice, spec=FAST, summary={"steady_step_time_ms": 5.5, "final_eval_loss": 2.5})
    [board] = boards(alice)
    assert [(row.rank, row.configuration["precision"], row.n, row.steady_step_time_ms) for row in board.rows] == [
        (1, "bf16-mixed", 1, 5.5),
        (2, "fp32", 3, 11.0),
    ]
    assert [row.ratio for row in board.rows] == [1.0, 2.0]
    assert [column.name for column in board.columns] == ["precision"]


def test_repeats_with_other_seeds_are_one_configuration(alice: User) -> None:
    jobs = [make_ended_job(alice, spec=make_spec(seed=seed)) for seed in (1, 2)]
    [board] = boards(alice)
    [row] = board.rows
    assert sorted(row.job_ids) == sorted(job.pk for job in jobs)
    assert row.owners == ["alice"]


def test_other_work_is_another_board(alice: User) -> None:
    make_ended_job(alice)
    make_ended_job(alice, spec=make_spec(learning_rate=0.1))
    make_ended_job(alice, spec=make_spec(micro_batch_size=64))
    assert len(boards(alice)) == 3


def test_the_same_global_batch_is_the_same_work(alice: User) -> None:
    make_ended_job(alice, spec=make_spec(micro_batch_size=32))
    make_ended_job(alice, spec=make_spec(micro_batch_size=16, grad_accum_steps=2))
    [board] = boards(alice)
    assert {column.name for column in board.columns} == {"micro_batch_size", "grad_accum_steps"}


def test_another_device_is_another_board(alice: User) -> None:
    make_ended_job(alice)
    make_ended_job(alice, started={"device_name": "Slow CPU"})
    assert {board.device_name for board in boards(alice)} == {"Fast CPU", "Slow CPU"}


def test_a_board_says_its_work_in_words(alice: User) -> None:
    make_ended_job(alice)
    [board] = boards(alice)
    assert board.title == "gpt-tiny on stdlib-text, 100 steps of 32 samples, adamw at learning rate 0.001"
    assert board.workload["dataset_revision"] == "r1"
    assert board.versions["torch"] == "2.13.0"


def test_only_runs_that_succeeded_are_ranked(alice: User) -> None:
    for outcome in Outcome:
        if outcome is not Outcome.SUCCEEDED:
            make_ended_job(alice, outcome=outcome)
    start(make_job(alice))
    make_job(alice)
    assert boards(alice) == []


def test_a_run_without_a_step_time_is_not_ranked(alice: User) -> None:
    make_ended_job(alice, summary={"steady_step_time_ms": None})
    make_ended_job(alice, summary={"steady_step_time_ms": math.nan})
    assert boards(alice) == []


def test_other_teams_runs_are_not_shown_but_staff_see_all(alice: User, stranger: User) -> None:
    make_ended_job(stranger)
    assert boards(alice) == []
    assert len(boards(make_user(is_staff=True))) == 1


def test_any_number_of_runs_is_one_query(alice: User, django_assert_num_queries: object) -> None:
    for seed in range(4):
        make_ended_job(alice, spec=make_spec(seed=seed, learning_rate=0.1 + seed % 2))
    with django_assert_num_queries(1):  # type: ignore[operator]
        assert len(boards(alice)) == 2


def test_missing_memory_and_loss_are_none(alice: User) -> None:
    make_ended_job(alice, summary={"peak_rss_bytes": None, "final_eval_loss": None, "samples_per_s": None})
    [row] = boards(alice)[0].rows
    assert (row.peak_rss_bytes, row.peak_allocated_bytes, row.final_eval_loss, row.samples_per_s) == (None,) * 4
