"""The whole program, measured from outside: from a submit to the first stored point, and the web process's memory."""

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.effort import Effort
from tests.system.pitwall import Pitwall, running, wait_until

_SPEC = {"model": "mlp", "dataset": "digits", "micro_batch_size": 64, "num_steps": 2000, "device": "cpu"}


def measure(effort: Effort) -> dict[str, Any]:
    """Times in seconds and memory in bytes, on an idle installation of its own with the real heartbeats."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Path(folder) / "var", PITWALL_TIME_SCALE="1") as pitwall,
    ):
        _let_first_jobs_end(pitwall)
        times_s = [_submit_to_first_point_s(pitwall) for _ in range(effort.num_repeats + 2)]
        return {
            "submit_to_first_point_s": {"median": statistics.median(times_s), "raw": times_s},
            "web_rss_bytes": _web_rss_bytes(pitwall),
        }


def _let_first_jobs_end(pitwall: Pitwall) -> None:
    wait_until(lambda: not _open_jobs(pitwall), 600, "the end of the first run's jobs")


def _open_jobs(pitwall: Pitwall) -> list[Any]:
    jobs = pitwall.client.get("/jobs").raise_for_status().json()["jobs"]
    return [job for job in jobs if job["outcome"] is None]


def _submit_to_first_point_s(pitwall: Pitwall) -> float:
    """Until a point of the job comes back from the API; its end is waited for, so that the next one finds peace."""
    began_s = time.perf_counter()
    job_id = pitwall.submit(**_SPEC)
    while not _has_points(pitwall, job_id):
        time.sleep(0.005)
    took_s = time.perf_counter() - began_s
    pitwall.wait_for(job_id, "succeeded")
    return took_s


def _has_points(pitwall: Pitwall, job_id: int) -> bool:
    response = pitwall.client.get(f"/jobs/{job_id}/curves/train_loss")
    return response.status_code == 200 and bool(response.json()["y"])


def _web_rss_bytes(pitwall: Pitwall) -> int:
    """Resident memory of the web process after it has served pages and figures."""
    for path in ("/leaderboard", "/queues", "/workers", "/compare?jobs=1,2&series=train_loss"):
        pitwall.client.get(path).raise_for_status()
    (web,) = pitwall.processes_running("uvicorn")
    return int(web.memory_info().rss)


def table(results: dict[str, Any]) -> list[str]:
    """The results as Markdown lines."""
    times = results["submit_to_first_point_s"]
    spread = f"{min(times['raw']):.2f} to {max(times['raw']):.2f}"
    return [
        "| Program | Median | Spread |",
        "|---|---|---|",
        f"| submit to first stored point, cold start, s | {times['median']:.2f} | {spread} |",
        f"| web process resident memory, MB | {results['web_rss_bytes'] / 1e6:.0f} | |",
    ]
