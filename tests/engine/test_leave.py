import subprocess
import sys

# What still stands in a module when Python takes itself apart is told so by its destructor.
SCRIPT = r"""
import atexit, os
from workers.engine.rank import Leave

class Left:
    def __del__(self, write=os.write):
        write(1, b"taken apart\n")

leave = Leave()
atexit.register(os.write, 1, b"handlers ran\n")
left = Left()
{ending}
"""


def leave_with(ending):
    return subprocess.run(
        [sys.executable, "-c", SCRIPT.format(ending=ending)], capture_output=True, text=True, timeout=60
    )


def test_a_rank_that_is_done_runs_its_handlers_and_is_never_taken_apart():
    ended = leave_with("leave.done = True")
    assert (ended.returncode, ended.stdout.split("\n")) == (0, ["handlers ran", ""])


def test_a_rank_that_fails_ends_as_any_process_does():
    ended = leave_with("raise RuntimeError('broken')")
    assert ended.returncode == 1
    assert ended.stdout.split("\n") == ["handlers ran", "taken apart", ""]
    assert "RuntimeError: broken" in ended.stderr
