"""What a job costs that does nothing: 1,000 of them through one worker, beside plain Celery tasks that do nothing."""

from typing import Any

from benchmarks.effort import QUICK, Effort
from benchmarks.load import measured

NUM_JOBS = 1000


def measure(effort: Effort) -> dict[str, Any]:
    """Rates; jobs are run by a stand-in for the engine, which only says that it is done."""
    num_jobs = NUM_JOBS // 20 if effort is QUICK else NUM_JOBS
    return measured("", "benchmarks.load_measured", "empty_jobs", str(num_jobs))


def table(results: dict[str, Any]) -> list[str]:
    """The results as Markdown lines."""
    return [
        f"| {results['num_jobs']} of them through one worker | per s |",
        "|---|---|",
        f"| jobs that do nothing, each in processes of its own | {results['jobs_per_s']:.2f} |",
        f"| plain Celery tasks that do nothing | {results['celery_tasks_per_s']:.0f} |",
    ]
