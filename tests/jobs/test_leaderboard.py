"""Boards: what they hold, who ranks, and who does not and why."""

import math

import pytest

from jobs.board_runs import MOST_RUNS, kept_runs
from jobs.contract.metrics import Summary
from jobs.contract.spec import TrainSpec
from jobs.contract.states import Outcome
from jobs.models import Attempt, Board, BoardEntry, User
from jobs.selectors import leaderboard
from jobs.selectors.board_filter import BoardFilter
from jobs.selectors.board_words import badge, headline
from jobs.selectors.leaderboard import Asked, BoardView, Standing, view_board, visible_boards
from jobs.services import boards
from jobs.services.boards import change_baseline, rebuild_boards
from jobs.services.errors import NotPossible
from jobs.services.finish import finish_attempt
from tests.jobs.factories import make_ended_job, make_job, make_spec, make_user, make_worker, start

pytestmark = pytest.mark.django_db

FAST = {"precision": "bf16-mixed"}
# Step times differ a little from seed to seed, losses more, but alike in both configurations.
NOISE = (1.0, 1.004, 0.997)


def boards_of(user: User, **asked: object) -> list[BoardView]:
    return [view_board(board, Asked(**asked)) for board in visible_boards(user)]


def repeat(owner: User, step_time_ms: float, loss: float = 2.6, seeds: int = 3, **spec: object) -> None:
    for seed in range(seeds):
        summary = {
            "steady_step_time_ms": step_time_ms * NOISE[seed % 3],
            "final_eval_loss": loss + 0.01 * seed,
        }
        make_ended_job(owner, spec=make_spec(seed=seed, **spec), summary=summary)


def test_configurations_of_equal_loss_are_ranked_beyond_noise(alice: User) -> None:
    repeat(alice, 10.0)
    repeat(alice, 5.0, **FAST)
    [view] = boards_of(alice)
    assert [(row.rank, row.configuration["precision"], row.n, row.standing) for row in view.rows] == [
        (1, "bf16-mixed", 3, Standing.EQUAL),
        (2, "fp32", 3, Standing.BASELINE),
    ]
    cell = view.rows[0].cells["steady_step_time_ms"]
    assert cell.median == pytest.approx(5.0, rel=0.01)
    assert (cell.low or 0) < 5.0 < (cell.high or 0)
    assert view.rows[0].ratio is not None
    assert view.rows[0].ratio.ratio == pytest.approx(0.5)
    assert [column.name for column in view.columns] == ["precision"]
    assert "2.00 times better" in headline(view)


def test_what_is_not_shown_to_differ_shares_its_place(alice: User) -> None:
    repeat(alice, 10.0)
    repeat(alice, 10.0, micro_batch_size=16, grad_accum_steps=2)
    [view] = boards_of(alice)
    assert [(row.rank, row.is_tie) for row in view.rows] == [(1, True), (1, True)]


def test_faster_at_a_worse_loss_does_not_rank_unless_everything_does(alice: User) -> None:
    repeat(alice, 10.0)
    repeat(alice, 5.0, loss=2.9, **FAST)
    [view] = boards_of(alice)
    baseline, fast = view.rows
    assert (baseline.rank, fast.rank, fast.standing) == (1, None, Standing.WORSE)
    assert badge(fast) == ("failed", "faster, not equal")
    [view] = boards_of(alice, ranks_all=True)
    assert [(row.rank, row.standing) for row in view.rows] == [(1, Standing.WORSE), (2, Standing.BASELINE)]


def test_one_seed_is_insufficient_evidence_and_says_how_many_are_wanted(alice: User) -> None:
    repeat(alice, 10.0)
    repeat(alice, 5.0, seeds=1, **FAST)
    [view] = boards_of(alice)
    assert badge(view.rows[1])[1] == "insufficient evidence: 1 of 5 seeds"
    assert view.rows[1].rank is None


def test_the_same_seed_again_is_no_further_evidence_of_an_equal_loss(alice: User) -> None:
    for spec in ({}, FAST):
        for _again in range(3):
            make_ended_job(alice, spec=make_spec(**spec))
    [view] = boards_of(alice)
    assert {row.standing for row in view.rows} == {Standing.BASELINE, Standing.INSUFFICIENT}


def test_only_what_is_faster_is_called_faster_whatever_the_rows_are_ranked_by(alice: User) -> None:
    for seed in range(2):
        make_ended_job(alice, spec=make_spec(seed=seed), summary={"peak_rss_bytes": 100})
        lean = {"peak_rss_bytes": 50, "final_eval_loss": 2.9, "steady_step_time_ms": 20.0}
        make_ended_job(alice, spec=make_spec(seed=seed, **FAST), summary=lean)
    [view] = boards_of(alice, metric="peak_bytes")
    lean_row = next(row for row in view.rows if not row.is_baseline)
    assert (lean_row.verdict.value, badge(lean_row)[1]) == ("better", "worse loss")


def test_the_fastest_and_the_baseline_are_read_among_more_than_a_page_holds(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaderboard, "MOST_ENTRIES", 2)
    make_ended_job(alice, summary={"steady_step_time_ms": 50.0})
    for num_threads in (1, 2):
        make_ended_job(alice, spec=make_spec(num_threads=num_threads), outcome=Outcome.DIVERGED)
    make_ended_job(alice, spec=make_spec(**FAST), summary={"steady_step_time_ms": 6.0})
    make_ended_job(alice, spec=make_spec(channels_last=True), summary={"steady_step_time_ms": 5.0})
    [view] = boards_of(alice, ranks_all=True)
    assert sorted(row.cells["steady_step_time_ms"].median or 0 for row in view.rows) == [5.0, 6.0, 50.0]
    assert view.baseline is not None
    assert view.baseline.entry.pk == view.board.baseline_id
    assert view.num_unread == 2


def test_what_never_ended_well_is_nothing_to_be_held_against(alice: User) -> None:
    repeat(alice, 10.0)
    repeat(alice, 5.0, loss=2.9, **FAST)
    make_ended_job(alice, spec=make_spec(channels_last=True), outcome=Outcome.DIVERGED)
    failed = BoardEntry.objects.get(runs=[])
    with pytest.raises(NotPossible, match="nothing can be held against it"):
        change_baseline(failed.board, failed, alice)
    [view] = boards_of(alice, baseline=failed.pk)
    assert [(row.rank, row.standing) for row in view.rows] == [
        (1, Standing.BASELINE),
        (None, Standing.WORSE),
        (None, Standing.FAILED),
    ]


def test_who_diverges_where_the_baseline_does_not_is_not_equal_by_the_runs_that_came_through(alice: User) -> None:
    repeat(alice, 10.0)
    repeat(alice, 5.0, **FAST)
    make_ended_job(alice, spec=make_spec(seed=3, **FAST), outcome=Outcome.DIVERGED)
    [view] = boards_of(alice)
    fast = view.rows[1]
    assert (fast.rank, fast.standing, badge(fast)[1]) == (
        None,
        Standing.INSUFFICIENT,
        "equality not shown: 1 of 4 runs diverged",
    )


def test_a_margin_that_a_bad_first_run_fixed_passes_nothing_that_is_plainly_worse(alice: User) -> None:
    repeat(alice, 10.0, loss=20.0, precision="bf16-true")
    repeat(alice, 10.0, loss=2.0)
    repeat(alice, 5.0, loss=2.1, **FAST)
    good = BoardEntry.objects.get(configuration__precision="fp32")
    [view] = boards_of(alice, baseline=good.pk)
    assert view.is_margin_capped
    assert view.margin == pytest.approx(0.02 * 2.01)
    fast = next(row for row in view.rows if row.configuration["precision"] == "bf16-mixed")
    assert (fast.standing, badge(fast)[1]) == (Standing.WORSE, "faster, not equal")


def test_the_first_ones_sentence_tells_what_its_figures_leave_out(alice: User) -> None:
    repeat(alice, 10.0)
    repeat(alice, 5.0, **FAST)
    for spec in ({}, FAST):  # both do
        make_ended_job(alice, spec=make_spec(seed=3, **spec), outcome=Outcome.DIVERGED)
    [view] = boards_of(alice)
    assert headline(view).endswith("1 of its 4 runs diverged and are not in these figures.")
    repeat(alice, 2.0, loss=2.9, num_threads=1)
    [view] = boards_of(alice, ranks_all=True)
    assert headline(view).endswith("Its loss is not shown to be equal or better.")


def test_the_first_runs_configuration_is_the_baseline_and_another_may_be_asked_for(alice: User) -> None:
    repeat(alice, 10.0)
    repeat(alice, 5.0, **FAST)
    fast = BoardEntry.objects.get(configuration__precision="bf16-mixed")
    [view] = boards_of(alice, baseline=fast.pk)
    assert view.baseline is not None
    assert view.baseline.entry == fast
    assert view.rows[1].verdict.value == "worse"


def test_diverged_and_out_of_memory_stay_as_what_they_are_and_others_do_not_count(alice: User) -> None:
    make_ended_job(alice)
    for outcome in Outcome:
        if outcome is not Outcome.SUCCEEDED:
            make_ended_job(alice, outcome=outcome, spec=make_spec(**FAST))
    start(make_job(alice))
    make_job(alice)
    [view] = boards_of(alice)
    failed = view.rows[1]
    assert (failed.standing, failed.rank, failed.n, failed.num_runs) == (Standing.FAILED, None, 0, 2)
    assert failed.outcomes == {"diverged": 1, "out_of_memory": 1}


def test_without_a_loss_nothing_is_gated(alice: User) -> None:
    for spec, step_time_ms in (({}, 10.0), (FAST, 5.0)):
        make_ended_job(
            alice, spec=make_spec(**spec), summary={"final_eval_loss": None, "steady_step_time_ms": step_time_ms}
        )
    [view] = boards_of(alice)
    assert [row.standing for row in view.rows] == [Standing.UNGATED, Standing.BASELINE]
    assert [row.rank for row in view.rows] == [1, 1]  # a run each shows no difference


def test_the_memory_budget_leaves_out_what_does_not_fit(alice: User) -> None:
    make_ended_job(alice, summary={"peak_rss_bytes": 2**30})
    make_ended_job(alice, spec=make_spec(**FAST), summary={"peak_rss_bytes": 3 * 2**30})
    [view] = boards_of(alice, budget_bytes=2 * 2**30)
    assert [row.configuration["precision"] for row in view.rows] == ["fp32"]
    assert view.num_hidden == 1


def test_of_a_gpu_what_was_reserved_must_fit(alice: User) -> None:
    make_ended_job(alice, summary={"peak_allocated_bytes": 2**30, "peak_reserved_bytes": 3 * 2**30})
    assert not boards_of(alice, budget_bytes=2 * 2**30)[0].rows
    assert boards_of(alice, budget_bytes=3 * 2**30)[0].rows


def test_time_to_target_is_of_the_first_run_and_may_be_not_reached(alice: User) -> None:
    make_ended_job(alice, losses=(11.0, 6.0, 2.0, 1.0))
    make_ended_job(alice, spec=make_spec(**FAST), losses=(11.0, 9.0, 8.0, 7.0))
    [view] = boards_of(alice, metric="time_to_target_s", ranks_all=True)
    assert view.target == pytest.approx(2.0)
    reached, not_reached = view.rows
    assert reached.cells["time_to_target_s"].median == pytest.approx(0.03)
    assert not not_reached.cells["time_to_target_s"].is_reached
    assert (reached.rank, not_reached.rank) == (1, 2)
    [view] = boards_of(alice, metric="time_to_target_s", target=8.5)
    assert sorted(row.cells["time_to_target_s"].median or 0 for row in view.rows) == pytest.approx([0.02, 0.03])


def test_energy_to_target_is_the_mean_power_over_that_time(alice: User) -> None:
    make_ended_job(alice, losses=(11.0, 6.0, 2.0, 1.0), summary={"energy_j": 200.0, "steady_s": 2.0, "mfu": 0.4})
    [view] = boards_of(alice)
    assert view.rows[0].cells["energy_to_target_j"].median == pytest.approx(3.0)
    assert view.rows[0].cells["mfu"].median == 0.4


def test_a_run_that_missed_the_target_has_missed_it_in_energy_too(alice: User) -> None:
    power = {"energy_j": 200.0, "steady_s": 2.0}
    make_ended_job(alice, losses=(11.0, 6.0, 2.0, 1.0), summary=power)
    make_ended_job(alice, spec=make_spec(**FAST), losses=(11.0, 9.0, 8.0, 7.0), summary=power)
    [view] = boards_of(alice, metric="energy_to_target_j", ranks_all=True)
    assert [row.cells["energy_to_target_j"].is_reached for row in view.rows] == [True, False]
    [view] = boards_of(alice, metric="energy_to_target_j", target=8.5)
    assert sorted(row.cells["energy_to_target_j"].median or 0 for row in view.rows) == pytest.approx([2.0, 3.0])


def test_where_there_is_no_target_none_was_missed(alice: User) -> None:
    make_ended_job(alice, losses=(1.0, 2.0, 3.0))
    [view] = boards_of(alice)
    assert view.target is None
    assert view.rows[0].cells["time_to_target_s"].n == 0


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("precision:bf16-mixed", ["bf16-mixed"]),
        ("precision!=bf16-mixed", ["fp32"]),
        ("micro_batch_size<16", []),
        ("owner:me", ["fp32", "bf16-mixed"]),
        ("owner:bob", []),
        ("age<1d", ["fp32", "bf16-mixed"]),
        ("ended<2020-01-01", []),
        ("seed:0", ["fp32", "bf16-mixed"]),
        ("model:mlp", []),  # a board has one model; it says so
        ("ended<none", []),
        ("num_threads>=none", []),
    ],
)
def test_a_board_is_narrowed_in_the_words_of_the_list(alice: User, text: str, left: list[str]) -> None:
    make_ended_job(alice)
    make_ended_job(alice, spec=make_spec(**FAST), summary={"steady_step_time_ms": 11.0})
    [view] = boards_of(alice, only=BoardFilter.of(text, alice), ranks_all=True)
    assert [row.configuration["precision"] for row in view.rows] == left


def test_other_work_is_another_board(alice: User) -> None:
    make_ended_job(alice)
    make_ended_job(alice, spec=make_spec(learning_rate=0.1))
    make_ended_job(alice, spec=make_spec(micro_batch_size=64))
    assert len(boards_of(alice)) == 3


def test_the_same_global_batch_is_the_same_work(alice: User) -> None:
    make_ended_job(alice, spec=make_spec(micro_batch_size=32))
    make_ended_job(alice, spec=make_spec(micro_batch_size=16, grad_accum_steps=2))
    [view] = boards_of(alice)
    assert {column.name for column in view.columns} == {"micro_batch_size", "grad_accum_steps"}


def test_another_device_is_another_board(alice: User) -> None:
    make_ended_job(alice)
    make_ended_job(alice, started={"device_name": "Slow CPU"})
    assert {view.board.device_name for view in boards_of(alice)} == {"Fast CPU", "Slow CPU"}


def test_a_board_says_its_work_in_words(alice: User) -> None:
    make_ended_job(alice)
    [view] = boards_of(alice)
    assert view.title == "gpt-tiny on stdlib-text, 100 steps of 32 samples, adamw at learning rate 0.001"
    assert view.board.workload["dataset_revision"] == "r1"
    assert view.board.versions["torch"] == "2.13.0"


def test_a_figure_that_is_none_or_no_number_is_an_empty_cell(alice: User) -> None:
    make_ended_job(alice, summary={"steady_step_time_ms": math.nan, "peak_rss_bytes": None, "samples_per_s": None})
    [row] = boards_of(alice)[0].rows
    assert [row.cells[name].n for name in ("steady_step_time_ms", "peak_bytes", "samples_per_s")] == [0, 0, 0]
    assert row.rank is None


def test_other_teams_runs_are_not_shown_but_staff_see_all(alice: User, stranger: User) -> None:
    make_ended_job(stranger)
    assert boards_of(alice) == []
    assert len(boards_of(make_user(is_staff=True))) == 1


def test_two_teams_do_not_share_a_board(alice: User, stranger: User) -> None:
    make_ended_job(alice)
    make_ended_job(stranger)
    assert Board.objects.count() == 2


def test_a_page_reads_the_same_however_many_runs_there_are(alice: User, django_assert_num_queries: object) -> None:
    for seed in range(3):
        make_ended_job(alice, spec=make_spec(seed=seed))
    board = visible_boards(alice).get()
    with django_assert_num_queries(2):  # type: ignore[operator]
        view_board(board)


def test_an_entry_keeps_its_newest_runs_and_counts_all(alice: User) -> None:
    make_ended_job(alice)
    entry = BoardEntry.objects.get()
    entry.runs = entry.runs * MOST_RUNS
    entry.outcomes = {"succeeded": MOST_RUNS}
    entry.save()
    newest = make_ended_job(alice)
    entry.refresh_from_db()
    assert len(entry.runs) == MOST_RUNS
    assert entry.runs[-1]["job"] == newest.pk
    assert entry.outcomes == {"succeeded": MOST_RUNS + 1}


@pytest.mark.parametrize("newer", [{}, FAST])
def test_newer_runs_on_other_seeds_leave_the_evidence_where_it_is(alice: User, newer: dict[str, str]) -> None:
    """Of the baseline, of what is held against it, and again after the boards are made anew."""
    worker = make_worker()
    repeat(alice, 10.0, seeds=5)
    repeat(alice, 5.0, seeds=5, **FAST)
    for seed in range(100, 100 + MOST_RUNS):
        make_ended_job(alice, spec=make_spec(seed=seed, **newer), worker=worker, losses=())
    for _time in range(2):
        [view] = boards_of(alice)
        fast = next(row for row in view.rows if not row.is_baseline)
        assert fast.loss
        assert (fast.loss.n, fast.standing) == (5, Standing.EQUAL)
        entry = BoardEntry.objects.get(configuration__precision=newer.get("precision", "fp32"))
        assert len(entry.runs) == MOST_RUNS
        assert [run["seed"] for run in entry.runs][-10:] == list(range(110, 120)), "the newest are there, too"
        list(rebuild_boards())


def runs_on(*seeds: int) -> list[dict[str, int]]:
    return [{"job": job, "seed": seed} for job, seed in enumerate(seeds)]


def test_of_more_runs_than_a_board_keeps_it_keeps_the_shared_seeds_and_the_newest() -> None:
    runs = runs_on(7, 8, *range(50, 80))
    kept = [run["seed"] for run in kept_runs(runs, {7: 1, 8: 1, 60: 3})]
    assert kept == [7, 8, *range(50, 57), 60, *range(70, 80)]
    again = runs_on(1, 2, 3, *[0] * 25)
    assert [run["job"] for run in kept_runs(again, {})] == [0, 1, 2, *range(11, 28)], "one seed ran again and again"


def test_boards_are_made_anew_as_they_were(alice: User) -> None:
    worker = make_worker()
    repeat(alice, 10.0, seeds=2)
    make_ended_job(alice, spec=make_spec(**FAST), outcome=Outcome.OUT_OF_MEMORY, worker=worker)
    before = [(entry.runs, entry.courses, entry.outcomes) for entry in BoardEntry.objects.order_by("pk")]
    BoardEntry.objects.filter(outcomes__has_key="out_of_memory").delete()
    assert list(rebuild_boards()) == [3]
    assert [(entry.runs, entry.courses, entry.outcomes) for entry in BoardEntry.objects.order_by("pk")] == before
    assert Board.objects.get().num_runs == 3


def test_boards_made_anew_keep_the_order_in_which_runs_ended(alice: User) -> None:
    """The one that began first ended last."""
    first, second = (make_worker(name) for name in ("one", "two"))
    long = start(make_job(alice, spec=make_spec(seed=0)), first)
    make_ended_job(alice, spec=make_spec(seed=1), worker=second)
    finish_attempt(long, Outcome.SUCCEEDED, Summary(steady_step_time_ms=10.0))
    before = (BoardEntry.objects.values().get(), Board.objects.values().get())
    list(rebuild_boards())
    assert (BoardEntry.objects.values().get(), Board.objects.values().get()) == before
    assert [run["seed"] for run in BoardEntry.objects.get().runs] == [1, 0]


def test_a_run_that_ends_while_boards_are_made_anew_counts_once(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boards, "_REBUILT_AT_ONCE", 1)
    repeat(alice, 10.0, seeds=2)
    running = start(make_job(alice, spec=make_spec(seed=2)))
    rebuilding = rebuild_boards()
    next(rebuilding)
    finish_attempt(running, Outcome.SUCCEEDED, Summary(steady_step_time_ms=10.0))
    make_ended_job(alice, spec=make_spec(seed=3))
    list(rebuilding)
    entry = BoardEntry.objects.get()
    assert sorted(run["seed"] for run in entry.runs) == [0, 1, 2, 3]
    assert (entry.outcomes, entry.board.num_runs) == ({"succeeded": 4}, 4)


def test_a_field_that_was_added_since_counts_with_its_default(alice: User) -> None:
    make_ended_job(alice)
    entry = BoardEntry.objects.get()
    entry.configuration = {name: value for name, value in entry.configuration.items() if name != "channels_last"}
    entry.save()
    [view] = boards_of(alice)
    assert view.rows[0].configuration["channels_last"] is TrainSpec().channels_last


def test_a_run_that_no_board_can_take_ends_all_the_same(alice: User, caplog: pytest.LogCaptureFixture) -> None:
    attempt = start(make_job(alice), make_worker())
    unreadable = {"resolved_spec": {"precision": "of another version"}, "workload_key": "w", "environment_key": "e"}
    Attempt.objects.filter(pk=attempt.pk).update(**unreadable)
    assert finish_attempt(attempt, Outcome.SUCCEEDED, Summary()) is Outcome.SUCCEEDED
    attempt.job.refresh_from_db()
    assert attempt.job.outcome == Outcome.SUCCEEDED
    assert not Board.objects.exists()
    assert "rebuild_boards" in caplog.text
