"""Processes that take turns: what they did is counted rightly, and none is left behind."""

import json
import sys
from itertools import groupby

import psutil
import pytest

from benchmarks import turns
from benchmarks.pairs import loss_difference
from benchmarks.processes import Failed
from benchmarks.turns import Course, Piece, progress_of, read_marks

# Counts as fast as it can in lines like the engine's; each `loss` is the moment of its step, for all to compare.
COUNT = """
import json, time
step, due_s = 0, 0.0
while True:
    step += 1
    if time.monotonic() >= due_s:
        due_s = time.monotonic() + 0.01
        print(json.dumps({"type": "points", "steps": [step], "series": {"train_loss": [time.monotonic()]}}), flush=True)
"""
BREAK = "import sys; sys.exit('no such data set')"


def points(step: int, *losses: float) -> bytes:
    return json.dumps({"type": "points", "steps": [step], "series": {"train_loss": losses}}).encode() + b"\n"


def test_progress_is_from_the_first_mark_of_the_timed_part_to_the_last():
    warm_up = Piece(0.0, 3.0, points(11, 5.0))
    timed = [Piece(0.5, 3.5, points(20, 4.0)), Piece(1.0, 4.0, points(30, 3.0)), Piece(2.5, 5.0, points(50, 2.0))]
    progress = progress_of([warm_up, *timed])
    assert (progress.num_steps, progress.wall_s, progress.cpu_s) == (30, 2.0, 1.5)
    assert progress.step_time_ms == pytest.approx(1e3 * 2.0 / 30)
    assert progress.step_cpu_time_ms == pytest.approx(50)
    assert progress.losses == [5.0, 4.0, 3.0, 2.0]


def test_a_line_counts_when_its_end_has_come_and_other_events_do_not():
    phase, points_of_telemetry = b'{"type": "phase"}\n', b'{"type": "points", "series": {"telemetry.load": [1]}}\n'
    line = points(40, 1.0)
    data = [points(20, 2.0), phase + line[:9], line[9:] + points_of_telemetry + line[:5]]
    progress = progress_of([Piece(wall_s, wall_s, part) for wall_s, part in zip((0.2, 0.3, 0.7), data, strict=True)])
    assert (progress.num_steps, progress.wall_s) == (20, pytest.approx(0.5))


def test_one_mark_is_no_measurement():
    with pytest.raises(Failed, match="less than twice"):
        progress_of([Piece(0.0, 1.0, points(11, 1.0)), Piece(0.5, 1.5, points(20, 1.0))])


@pytest.mark.parametrize("backwards", [False, True])
def test_only_one_runs_at_any_time_and_none_stays(monkeypatch, backwards):
    monkeypatch.setattr(turns, "progress_of", lambda pieces: pieces)
    before = psutil.Process().children()
    commands = {name: [sys.executable, "-c", COUNT] for name in ("one", "two")}
    pieces = turns.race(commands, 1, Course(num_rounds=3, slice_s=0.5), backwards=backwards)
    assert psutil.Process().children() == before
    # What was under way when a process was stopped as ready comes at the very beginning of its first slice.
    marks = {name: [mark for mark in read_marks(pieces[name]) if mark.wall_s > 0.1] for name in commands}
    order = [name for _moment, name in sorted((mark.losses[0], name) for name in commands for mark in marks[name])]
    slices = [name for name, _marks in groupby(order)]
    assert slices == (["two", "one", "two", "one"] if backwards else ["one", "two", "one", "two"])  # A B, B A, A B


def test_one_that_ends_early_is_told_with_its_own_words_and_the_others_are_ended():
    before, python = psutil.Process().children(), [sys.executable, "-c"]
    with pytest.raises(Failed, match=r"broken ended early.\nno such data set"):
        turns.race({"fine": [*python, COUNT], "broken": [*python, BREAK]}, 1, Course(), backwards=False)
    assert psutil.Process().children() == before


def test_losses_differ_by_the_most_that_a_step_of_both_differs():
    assert loss_difference([2.0, 1.0], [2.0, 1.0, 0.5]) == 0
    assert loss_difference([2.0, 1.0, 9.0], [2.0, 1.25]) == pytest.approx(0.2)
