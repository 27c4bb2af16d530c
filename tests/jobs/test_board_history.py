"""A board over time: marks where versions changed, and who got slower beyond noise."""

from datetime import UTC, datetime, timedelta

import pytest

from jobs.figures.board_history import history_figure
from jobs.models import Board, BoardEntry, Team, User
from jobs.selectors.board_history import BoardHistory, Line, Moment, history_of
from tests.jobs.factories import make_ended_job

START = datetime(2026, 11, 1, 12, tzinfo=UTC)


def make_board(team: Team, torch: str, day: int, **more: object) -> Board:
    at = START + timedelta(days=day)
    values = {"workload_key": "w", "environment_key": torch, "device_name": "Fast CPU", "workload": {}} | more
    return Board.objects.create(
        team=team, versions={"torch": torch, "engine": "1"}, first_ended_at=at, last_ended_at=at, **values
    )


def make_entry(board: Board, *step_times_ms: float, key: str = "k", precision: str = "fp32") -> BoardEntry:
    at = board.first_ended_at.isoformat()
    runs = [
        {"job": seed + 1, "seed": seed, "owner": "alice", "ended_at": at, "steady_step_time_ms": value}
        for seed, value in enumerate(step_times_ms)
    ]
    return BoardEntry.objects.create(
        board=board,
        configuration_key=key,
        configuration={"precision": precision},
        runs=runs,
        step_time_ms=step_times_ms[0],
        last_ended_at=board.last_ended_at,
    )


@pytest.fixture
def grounds(team: Team) -> list[Board]:
    """Three versions on one device, and another device that is none of the family."""
    make_board(team, "2.12", 1, environment_key="other", device_name="Slow CPU")
    return [make_board(team, torch, day) for torch, day in (("2.11", 0), ("2.12", 5), ("2.13", 9))]


def test_versions_that_changed_are_marked(grounds: list[Board]) -> None:
    for board, step_time_ms in zip(grounds, (12.0, 10.0, 11.0), strict=True):
        make_entry(board, step_time_ms)
    history = history_of(grounds[2])
    assert [change.words for change in history.changes] == ["torch 2.11 → 2.12", "torch 2.12 → 2.13"]
    [line] = history.lines
    assert [(one.at, one.step_time_ms) for one in line.moments] == [
        ("2026-11-01T12:00:00", 12.0),
        ("2026-11-06T12:00:00", 10.0),
        ("2026-11-10T12:00:00", 11.0),
    ]
    assert [one.step_time_ms for one in history.best] == [12.0, 10.0]
    figure = history_figure(history, ["plain"])
    assert [mark["x0"] for mark in figure["layout"]["shapes"]] == ["2026-11-06T12:00:00", "2026-11-10T12:00:00"]
    assert figure["data"][1]["y"] == [12.0, 10.0, 11.0]


def test_changes_that_lie_close_together_are_one_mark(team: Team) -> None:
    for torch, day in (("2.11", 0), ("2.12", 99), ("2.13", 100)):
        make_entry(make_board(team, torch, day), 10.0)
    figure = history_figure(history_of(Board.objects.get(versions__torch="2.13")), ["plain"])
    assert [mark["x0"] for mark in figure["layout"]["shapes"]] == ["2027-02-08T12:00:00"]
    assert [mark["text"] for mark in figure["layout"]["annotations"]] == ["torch 2.11 → 2.12; torch 2.12 → 2.13"]
    assert "of 20 runs at most" in figure["layout"]["meta"]["caption"]


def test_what_got_slower_beyond_noise_is_told_and_noise_is_not(grounds: list[Board]) -> None:
    make_entry(grounds[1], 10.0, 10.1, 9.9)
    make_entry(grounds[2], 11.0, 11.2, 10.9)
    make_entry(grounds[1], 10.0, 10.5, 9.5, key="noisy", precision="bf16-mixed")
    make_entry(grounds[2], 10.4, 9.9, 9.8, key="noisy", precision="bf16-mixed")
    [regression] = history_of(grounds[2]).regressions
    assert regression.configuration["precision"] == "fp32"
    assert regression.ratio.ratio == pytest.approx(1.1, rel=0.01)
    assert regression.words == "torch 2.12 → 2.13"
    assert history_of(grounds[1]).regressions == []


@pytest.mark.parametrize(("factor", "is_told"), [(1.1, True), (1.01, False), (0.9, False)])
def test_what_got_slower_on_the_same_versions_from_one_day_to_the_next_is_told(
    grounds: list[Board], factor: float, is_told: bool
) -> None:
    entry = make_entry(grounds[0], 10.0, 10.1, 9.9)
    again = [
        run | {"ended_at": "2026-11-03T12:00:00", "steady_step_time_ms": factor * run["steady_step_time_ms"]}
        for run in entry.runs
    ]
    entry.runs += again
    entry.save()
    told = [(one.words, round(one.ratio.ratio, 3)) for one in history_of(grounds[0]).regressions]
    assert told == ([("the same versions, 2026-11-01 → 2026-11-03", 1.1)] if is_told else [])


def test_a_configuration_is_held_against_the_newest_ground_that_had_it(grounds: list[Board]) -> None:
    make_entry(grounds[0], 10.0, 10.1, 9.9)
    make_entry(grounds[2], 11.0, 11.2, 10.9)
    [regression] = history_of(grounds[2]).regressions
    assert regression.words == "torch 2.11 → 2.13"


def test_the_best_only_falls() -> None:
    line = Line("k", {}, [Moment("2026-11-01", 3.0, 1), Moment("2026-11-02", 4.0, 1), Moment("2026-11-03", 2.0, 1)])
    assert [one.at for one in BoardHistory([line], [], []).best] == ["2026-11-01", "2026-11-03"]


def test_a_board_of_one_run_has_no_history(alice: User) -> None:
    make_ended_job(alice)
    history = history_of(Board.objects.get())
    assert (history.changes, history.regressions, len(history.lines)) == ([], [], 1)
