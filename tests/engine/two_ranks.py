"""Many cases on the same two ranks, for tests that look at what ranks compute, not at how they are started."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine_runs import DIGITS, ROOT, Run

from jobs.contract.events import parse_event

LONGEST_S = 600


def train_on_two_ranks(folder: Path, **cases: dict[str, Any]) -> dict[str, Run]:
    """A run of the default digits job on two ranks for each case's fields, by the case's name.

    `files` among the fields are what `RunFiles` takes. The ranks load FOLDER/sitecustomize.py, where there is one.
    """
    asked = [DIGITS | {"num_devices": 2} | fields for fields in cases.values()]
    return dict(zip(cases, run_on_two_ranks(folder, asked), strict=True))


def run_on_two_ranks(folder: Path, cases: Sequence[dict[str, Any]], *, evaluates_little: bool = False) -> list[Run]:
    """Both ranks go through all cases; what each case told, in their order."""
    asked = {"cases": list(cases), "evaluates_little": evaluates_little}
    (folder / "cases.json").write_text(json.dumps(asked, default=str))
    start_two_ranks(folder, "one_of_two_ranks.py")
    lines = [(folder / f"{number}.jsonl").read_bytes().splitlines() for number in range(len(cases))]
    events = [[parse_event(line) for line in each] for each in lines]
    return [Run(each, each[-1].summary) for each in events]


def start_two_ranks(folder: Path, script: str) -> None:
    """`python SCRIPT FOLDER RANK` for both ranks, until both have ended well."""
    command = [sys.executable, str(Path(__file__).with_name(script)), str(folder)]
    environment = os.environ | {"PYTHONPATH": f"{folder}:{ROOT}"}
    with (folder / "ranks.txt").open("wb") as told:
        ranks = [subprocess.Popen([*command, str(rank)], env=environment, stderr=told) for rank in range(2)]
        try:
            _wait_for(ranks)
        finally:
            for rank in ranks:
                rank.kill()
                rank.wait()
    assert [rank.returncode for rank in ranks] == [0, 0], (folder / "ranks.txt").read_text()


def _wait_for(ranks: Sequence[subprocess.Popen[bytes]]) -> None:
    """Until both have ended, or one has failed: the other one would wait for it."""
    deadline = time.monotonic() + LONGEST_S
    while time.monotonic() < deadline:
        ended = [rank.poll() for rank in ranks]
        if None not in ended or any(ended):
            return
        time.sleep(0.05)
