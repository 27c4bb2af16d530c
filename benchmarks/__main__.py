"""`make bench`: every benchmark, or some; a table, and a dated JSON file with raw numbers and versions."""

import argparse
import time
from importlib import import_module
from typing import Any

from benchmarks.effort import FULL, QUICK, Effort
from benchmarks.report import begin_results, write

PARTS = {  # by the name that `--only` takes: a module with `measure` and `table`
    "loop": "engine_vs_loop",
    "peers": "peers",
    "clock": "clock",
    "compile": "compile_cache",
    "memory": "memory_estimate",
    "program": "program",
    "start": "start",
    "load": "load",
    "jobs": "empty_jobs",
    "viewers": "viewers",
    "browser": "browser",
    "curves": "curves",
    "runs": "runs",
    "verdicts": "verdicts",
    "search": "fastest",
}


def main() -> None:
    """Measure, print and write."""
    arguments = _parse_arguments()
    names = ["cpu"]
    names += [] if arguments.only == list(PARTS) else arguments.only  # a part never takes the place of the whole
    names += ["quick"] if arguments.quick else []
    results, lines = begin_results() | {"took_s": {}}, list[str]()
    for part in arguments.only:
        lines += measure_part(part, QUICK if arguments.quick else FULL, results)
        path = write(results, lines, *names)  # after each, for whoever loses patience
    print(f"Raw numbers: {path}")


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="few and short repeats: for a look, not for a claim")
    return parser.parse_args()


def measure_part(part: str, effort: Effort, results: dict[str, Any]) -> list[str]:
    """Measure one part into `results`, print its table and return the table's lines."""
    module, began_s = import_module(f"benchmarks.{PARTS[part]}"), time.perf_counter()
    results[part] = module.measure(effort)
    results["took_s"][part] = round(time.perf_counter() - began_s)
    lines: list[str] = [*module.table(results[part]), ""]
    print("\n".join(lines), flush=True)
    return lines


if __name__ == "__main__":
    main()
