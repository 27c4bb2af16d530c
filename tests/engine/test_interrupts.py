"""Ctrl-C at any time: the run's last line, one sentence, and no traceback of what it interrupted on the way out."""

import os
import signal
import subprocess
import sys
import threading

import pytest
from engine_runs import ROOT, write_spec

from jobs.contract.events import Points, parse_event
from jobs.contract.states import Outcome

SLOW_IMPORT = """
import sys, time

class Slow:
    def find_spec(self, name, *_):
        if name == "workers.engine.attempt":
            sys.stderr.write("importing\\n")
            time.sleep(60)

sys.meta_path.insert(0, Slow())
"""


def start(folder, **fields):
    command = [sys.executable, "-m", "workers.engine", "run", str(write_spec(folder, **fields | {"num_steps": 10**8}))]
    environment = os.environ | {"PYTHONPATH": f"{folder}:{ROOT}"}
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=listen_to_ctrl_c,
    )


def listen_to_ctrl_c():
    """What a script starts in the background inherits that Ctrl-C is ignored, and these tests may be such a thing."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def interrupt_until_it_ends(process):
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(0.02)
        except subprocess.TimeoutExpired:
            continue


@pytest.mark.parametrize("fields", [{}, {"parallelism": "ddp", "num_devices": 2}], ids=["one process", "two ranks"])
def test_however_often_it_is_said_a_run_stops_once(tmp_path, fields):
    process = start(tmp_path, **fields)
    for line in process.stdout:
        if isinstance(parse_event(line), Points):
            break
    interrupting = threading.Thread(target=interrupt_until_it_ends, args=(process,))
    interrupting.start()
    rest, told = process.communicate(timeout=60)  # at the same time: who writes to a full pipe cannot end
    interrupting.join()
    last = parse_event(rest.splitlines()[-1])
    assert (process.returncode, last.outcome) == (130, Outcome.CANCELLED)
    assert told.decode().splitlines()[-1] == last.error.message == "The run was told to stop."


def test_before_there_is_anything_to_tell_the_process_just_ends(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(SLOW_IMPORT)
    process = start(tmp_path)
    assert process.stderr.readline() == b"importing\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60) == (b"", b"")
    assert process.returncode == -signal.SIGINT
