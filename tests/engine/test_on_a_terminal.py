"""A run that somebody watches: one line that moves, and no JSON; in a pipe it stays JSON lines."""

import os
import pty
import subprocess
import sys
from pathlib import Path

from engine_runs import DIVERGING, ROOT, write_spec

from jobs.contract.events import Started, parse_event

OVER = "\r\x1b[K"


def watch(spec: Path, *, log: int | None = None, out: int | None = None) -> tuple[int, str, str, str]:
    """Exit code, what a terminal shows, and what went into pipes instead of it: output and log."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "workers.engine", "run", str(spec)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=out or theirs, stderr=log or theirs, text=True)
    os.close(theirs)
    shown = b""
    while chunk := read_terminal(ours):
        shown += chunk
    os.close(ours)
    told = process.communicate(timeout=60)
    return process.returncode, shown.decode().replace("\r\n", "\n"), *(text or "" for text in told)


def read_terminal(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # nobody has its other end any more
        return b""


def test_on_a_terminal_a_line_moves_and_no_json_is_shown(tmp_path):
    exit_code, shown, *_ = watch(write_spec(tmp_path, num_steps=200))
    assert exit_code == 0
    assert "{" not in shown
    written = shown.split(OVER)
    moved = [text for text in written if text.startswith("step ")]
    assert moved[-1].startswith("step 200 of 200, loss ")
    assert moved[-1].endswith(" ms a step, 0:00 left")
    assert not any("\n" in text for text in moved)
    assert written[-1].startswith("succeeded: 200 steps, ")
    assert "evaluation loss" in written[-1]


def test_warnings_stand_above_the_line(tmp_path):
    _exit_code, shown, *_ = watch(write_spec(tmp_path, num_steps=3, channels_last=True))
    (warning,) = [text for text in shown.split(OVER) if text.startswith("warning: ")]
    assert warning == "warning: channels_last: This model has nothing that this option could change.\n"


def test_a_bad_end_takes_the_line_away_and_leaves_its_sentence(tmp_path):
    exit_code, shown, *_ = watch(write_spec(tmp_path, **DIVERGING))
    assert exit_code == 5
    assert shown.split(OVER)[-1].startswith("The training loss stopped being finite at step ")
    assert "{" not in shown


def test_where_the_log_goes_elsewhere_it_is_told_there(tmp_path):
    _exit_code, shown, _out, log = watch(write_spec(tmp_path, num_steps=3, channels_last=True), log=subprocess.PIPE)
    assert "warning: channels_last" in log
    assert "warning: " not in shown
    assert "succeeded: 3 steps" in shown


def test_in_a_pipe_it_stays_json_although_the_log_is_on_a_terminal(tmp_path):
    _exit_code, shown, out, _log = watch(write_spec(tmp_path, num_steps=3), out=subprocess.PIPE)
    assert any(isinstance(parse_event(line), Started) for line in out.splitlines())
    assert "succeeded" in shown
    assert OVER not in shown
