"""`python -m benchmarks.gpu`: what the engine reaches on this machine's GPU, and what each option does there.

Needs what the engine needs (torch, numpy, pydantic, scikit-learn, transformers, psutil, nvidia-ml-py) and nothing of
the web application. Each run is a fresh process; a question's configurations take turns, forwards and backwards.
"""

import argparse
import sys
from statistics import median
from typing import Any

from benchmarks.gpu_plan import QUESTIONS, Options, Question
from benchmarks.intervals import ratio_interval
from benchmarks.processes import Failed, run_engine
from benchmarks.report import begin_results, write

NO_GPU_EXIT_CODE = 3
_KEPT = (
    "steady_step_time_ms",
    "samples_per_s",
    "tokens_per_s",
    "mfu",
    "flops_per_s",
    "peak_allocated_bytes",
    "peak_reserved_bytes",
    "energy_j",
    "first_step_s",
    "is_steady",
    "spoiled_by",
    "observed_dtype",
    "attention_kernel",
    "fp32_arithmetic",
    "num_graph_breaks",
    "num_recompiles",
    "final_train_loss",
)


def main() -> int:
    """Measure, print and write; returns the exit code."""
    arguments = _parse_arguments()
    results = begin_results() | {"repeats": arguments.repeats}
    gpus = [device["name"] for device in results["host"]["devices"] if device["kind"] == "cuda"]
    if not gpus:
        sys.stderr.write("PyTorch sees no CUDA GPU on this machine, so there is nothing to measure here.\n")
        return NO_GPU_EXIT_CODE
    lines: list[str] = []
    for name in arguments.only:
        results[name] = measure(QUESTIONS[name], arguments.repeats)
        lines += [*table(QUESTIONS[name], results[name]), ""]
        path = write(results, lines, gpus[0].replace(" ", "-"), *_names(arguments.only))
        print("\n".join(lines[-len(results[name]) - 5 :]), flush=True)
    print(f"Raw numbers: {path}")
    return 0


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    names = list(QUESTIONS)
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="QUESTION", help=", ".join(names))
    parser.add_argument("--repeats", type=int, default=3, help="of each configuration")
    return parser.parse_args()


def _names(only: list[str]) -> list[str]:
    return [] if only == list(QUESTIONS) else only


def measure(question: Question, num_repeats: int) -> dict[str, Any]:
    """Per configuration its runs, or the sentence with which it failed or was refused."""
    found: dict[str, Any] = {name: {"spec": spec, "runs": []} for name, spec in question.configurations.items()}
    for number in range(num_repeats):
        names = list(found) if number % 2 == 0 else list(found)[::-1]
        for name in names:
            if "failed" not in found[name]:
                found[name] |= _run(found[name]["spec"], found[name]["runs"])
    return found


def _run(spec: Options, runs: list[dict[str, Any]]) -> dict[str, Any]:
    try:
        summary = run_engine(spec).summary
    except Failed as failure:
        return {"failed": str(failure).strip().rpartition("\n")[2]}  # its last line is the sentence
    return {"runs": [*runs, {name: summary[name] for name in _KEPT}]}


def table(question: Question, results: dict[str, Any]) -> list[str]:
    """The results as Markdown lines."""
    about = f" ({question.aim})" if question.aim else ""
    lines = [
        f"### {question.title}{about}",
        "",
        "| Configuration | ms a step | samples/s | tokens/s | MFU | Peak, GiB | Factor | 95 % interval | Steady |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    baseline = next(iter(results.values()))
    return lines + [_row(name, result, baseline) for name, result in results.items()]


def _row(name: str, result: dict[str, Any], baseline: dict[str, Any]) -> str:
    if "failed" in result:
        return f"| {name} | {result['failed']} | | | | | | | |"
    cells = [name, *(_show(result["runs"], *column) for column in _COLUMNS), *_factor(result, baseline)]
    cells.append("yes" if all(run["is_steady"] for run in result["runs"]) else "no")
    return f"| {' | '.join(cells)} |"


_COLUMNS = (
    ("steady_step_time_ms", "{:.3f}", 1),
    ("samples_per_s", "{:,.0f}", 1),
    ("tokens_per_s", "{:,.0f}", 1),
    ("mfu", "{:.1f} %", 100),
    ("peak_allocated_bytes", "{:.2f}", 2**-30),
)


def _show(runs: list[dict[str, Any]], name: str, form: str, scale: float) -> str:
    values = [run[name] for run in runs if run[name] is not None]
    return form.format(median(values) * scale) if values else ""


def _factor(result: dict[str, Any], baseline: dict[str, Any]) -> tuple[str, str]:
    """Speeds in samples, for batches may differ; paired by repeat."""
    if result is baseline or "failed" in baseline:
        return "", ""
    pairs = zip(result["runs"], baseline["runs"], strict=True)
    interval = ratio_interval([mine["samples_per_s"] / theirs["samples_per_s"] for mine, theirs in pairs])
    return f"{interval.ratio:.2f}", f"{interval.low:.2f} to {interval.high:.2f}"


if __name__ == "__main__":
    raise SystemExit(main())
