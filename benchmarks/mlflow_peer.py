"""MLflow's server as the peer of the curve store, in an environment of its own: its requirements are not ours.

It stores into SQLite, as ours does here, and is spoken to by HTTP without its client, which only takes more time.
"""

import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from benchmarks.curve_data import losses
from benchmarks.processes import ROOT

ENVIRONMENT = ROOT / ".venv" / "mlflow"
REQUIREMENTS = ROOT / "benchmarks" / "requirements-mlflow.txt"
POINTS_PER_REQUEST = 1000  # the most that it takes
POINTS_PER_PAGE = 25_000  # the most that it gives

_API = "/api/2.0/mlflow"


def prepare() -> None:
    """Make the environment, once for each version of the requirements."""
    made = ENVIRONMENT / "made.txt"
    if made.exists() and made.read_text() == REQUIREMENTS.read_text():
        return
    subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
    install = [
        str(ENVIRONMENT / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--requirement",
        str(REQUIREMENTS),
    ]
    subprocess.run(install, check=True)
    made.write_text(REQUIREMENTS.read_text())


class MlflowServer:
    """One server with a database of its own."""

    def __init__(self, address: str, database: Path) -> None:
        self.database = database
        self._client = httpx.Client(base_url=address + _API, timeout=300)
        self._experiment = ""

    def create_run(self) -> str:
        """The id of a new run."""
        if not self._experiment:
            self._experiment = self._post("experiments/create", name="curves")["experiment_id"]
        run = self._post("runs/create", experiment_id=self._experiment, start_time=0)
        return str(run["run"]["info"]["run_id"])

    def log(self, run_id: str, series: str, values: list[float]) -> None:
        """Store a series, step by step from 1."""
        metrics = [
            {"key": series, "value": value, "timestamp": step, "step": step}
            for step, value in enumerate(values, start=1)
        ]
        for begin in range(0, len(metrics), POINTS_PER_REQUEST):
            self._post("runs/log-batch", run_id=run_id, metrics=metrics[begin : begin + POINTS_PER_REQUEST])

    def history(self, run_id: str, series: str) -> list[float]:
        """Every value of a series, page by page."""
        values: list[float] = []
        token = ""
        while True:
            query = {"run_id": run_id, "metric_key": series, "max_results": POINTS_PER_PAGE}
            page = self._get("metrics/get-history", **query | ({"page_token": token} if token else {}))
            values += [metric["value"] for metric in page.get("metrics", [])]
            token = page.get("next_page_token", "")
            if not token:
                return values

    def used_bytes(self) -> int:
        """Pages of its database that hold something."""
        with sqlite3.connect(self.database) as connection:
            pages, free, size = (
                connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_count", "freelist_count", "page_size")
            )
        return int((pages - free) * size)

    def is_well(self) -> bool:
        """Whether it answers."""
        try:
            return self._client.get("experiments/search", params={"max_results": 1}).status_code == 200
        except httpx.HTTPError:
            return False

    def _post(self, path: str, **body: Any) -> dict[str, Any]:
        return self._client.post(f"/{path}", json=body).raise_for_status().json()  # type: ignore[no-any-return]

    def _get(self, path: str, **query: Any) -> dict[str, Any]:
        return self._client.get(f"/{path}", params=query).raise_for_status().json()  # type: ignore[no-any-return]


@contextmanager
def mlflow_server(port: int) -> Iterator[MlflowServer]:
    """A server with one worker process, as ours has."""
    with tempfile.TemporaryDirectory(prefix="mlflow-") as folder:
        database = Path(folder) / "mlflow.db"
        command = [str(ENVIRONMENT / "bin" / "mlflow"), "server", "--host", "127.0.0.1", "--port", str(port)]
        command += ["--backend-store-uri", f"sqlite:///{database}", "--workers", "1"]
        command += ["--default-artifact-root", f"{folder}/artifacts"]
        quiet = {"env": os.environ | {"MLFLOW_DISABLE_TELEMETRY": "true"}, "cwd": folder}
        log = (Path(folder) / "log.txt").open("w")
        with log, subprocess.Popen(command, stdout=log, stderr=log, **quiet) as process:  # type: ignore[call-overload]
            try:
                server = MlflowServer(f"http://127.0.0.1:{port}", database)
                while not server.is_well():
                    if process.poll() is not None:
                        raise RuntimeError((Path(folder) / "log.txt").read_text()[-2000:])
                    time.sleep(0.5)
                yield server
            finally:
                process.terminate()


def measure(port: int, num_runs: int, num_requests: int) -> dict[str, Any]:
    """The same work as ours: points per second, bytes a point, milliseconds of a full history."""
    prepare()
    with mlflow_server(port) as server:
        runs = [server.create_run() for _number in range(num_runs)]
        empty = server.used_bytes()
        began_s = time.perf_counter()
        for seed, run_id in enumerate(runs):
            for place, series in enumerate(("train_loss", "eval_loss", "learning_rate")):
                server.log(run_id, series, losses(1000, seed + place).tolist())
        many_per_s = 3000 * num_runs / (time.perf_counter() - began_s)
        long = server.create_run()
        began_s = time.perf_counter()
        server.log(long, "train_loss", losses(100_000, 0).tolist())
        one_per_s = 100_000 / (time.perf_counter() - began_s)
        bytes_a_point = (server.used_bytes() - empty) / (3000 * num_runs + 100_000)
        times_ms = []
        for _number in range(num_requests):
            began_s = time.perf_counter()
            assert len(server.history(long, "train_loss")) == 100_000
            times_ms.append(1000 * (time.perf_counter() - began_s))
    return {
        "num_runs": num_runs,
        "100 runs x 3 series x 1,000 points": {"median_per_s": many_per_s},
        "one run x 100,000 points": {"median_per_s": one_per_s},
        "bytes_a_point": bytes_a_point,
        "full_history_ms": times_ms,
    }
