"""Jobs of several nodes, on two workers of one machine: what goes right, and what may happen to either of them."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest

from tests.system.pitwall import PROJECT_ROOT, Pitwall, running, wait_until
from tests.system.postgres import PostgresServer

SECOND = "second-host"
TWO_NODES: dict[str, Any] = {
    **{"model": "mlp", "dataset": "digits", "device": "cpu"},
    **{"parallelism": "ddp", "num_nodes": 2, "micro_batch_size": 16},
}
ENDLESS = {"num_steps": 1_000_000}


class Site:
    """An installation whose queue a second host serves as well."""

    def __init__(self, pitwall: Pitwall, second: subprocess.Popen[bytes]) -> None:
        self.pitwall = pitwall
        self.second = second

    @property
    def roots(self) -> list[psutil.Process]:
        """All processes that everything else is below of."""
        return [*self.pitwall.processes(), *psutil.Process(self.second.pid).children(recursive=True)]

    def find(self, word: str) -> list[psutil.Process]:
        """The living processes of both hosts whose command line holds a word."""
        return [process for process in self.roots if _is_alive(process) and word in _command(process)]

    def wait_running(self, job_id: int, num_attempts: int = 1) -> dict[str, Any]:
        """The job once its attempt of that number, or a later one, has stored points."""

        def runs() -> dict[str, Any] | None:
            job = self.pitwall.job(job_id)
            attempts = job["attempts"]
            has_points = len(attempts) >= num_attempts and attempts[-1]["num_points"] > 0
            return job if job["state"] == "running" and has_points else None

        return dict(wait_until(runs, 90, f"attempt {num_attempts} of job {job_id} to run"))

    def hosts_in_use(self) -> int:
        """On how many hosts devices are leased."""
        return len(self.pitwall.sql("SELECT DISTINCT worker_id FROM jobs_device WHERE attempt_id IS NOT NULL"))

    def wait_clean(self) -> None:
        """Until no device is leased and no process of an attempt is left on either host."""
        wait_until(lambda: not self.hosts_in_use(), 60, "all devices to be free")
        wait_until(lambda: not self.find("supervisor") and not self.find("engine run"), 30, "the processes' end")


def _is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


@contextmanager
def second_host(pitwall: Pitwall) -> Iterator[Site]:
    """The installation with a worker of another name beside its own, which nothing keeps busy."""
    log = pitwall.var.parent / f"{pitwall.var.name}-second.txt"
    second = subprocess.Popen(
        [sys.executable, "manage.py", "worker"],
        env=pitwall.environment | {"PITWALL_HOST_NAME": SECOND},
        cwd=PROJECT_ROOT,
        stdout=log.open("ab"),
        stderr=subprocess.STDOUT,
    )
    site = Site(pitwall, second)
    try:
        for job in pitwall.client.get("/jobs").json()["jobs"]:
            pitwall.client.post(f"/jobs/{job['id']}/cancel")
        wait_until(lambda: SECOND in {each["hostname"] for each in _workers(pitwall)}, 90, "the second worker")
        site.wait_clean()
        yield site
    finally:
        second.send_signal(signal.SIGTERM)
        second.wait(timeout=30)


def _workers(pitwall: Pitwall) -> list[dict[str, Any]]:
    return list(pitwall.client.get("/workers").json()["workers"])


@pytest.fixture(scope="module")
def site(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Several hosts need PostgreSQL; the engine is one that computes nothing."""
    environment = {"PITWALL_ENGINE_MODULE": "tests.stand_in_engine"}
    url = postgres.create_database("nodes")
    var = tmp_path_factory.mktemp("nodes") / "var"
    with running(var, PITWALL_DATABASE_URL=url, **environment) as pitwall, second_host(pitwall) as site:
        yield site


def test_a_job_runs_on_both_hosts_until_it_is_cancelled_and_nothing_is_left_on_either(site: Site) -> None:
    job_id = site.pitwall.submit(**TWO_NODES, **ENDLESS)
    site.wait_running(job_id)
    assert site.hosts_in_use() == 2
    assert len(site.find("engine run")) == 2
    site.pitwall.client.post(f"/jobs/{job_id}/cancel").raise_for_status()
    site.pitwall.wait_for(job_id, "cancelled")
    site.wait_clean()


def test_a_job_that_ends_by_itself_frees_both_hosts(site: Site) -> None:
    site.pitwall.wait_for(site.pitwall.submit(**TWO_NODES, num_steps=20), "succeeded")
    site.wait_clean()


@pytest.mark.parametrize("module", ["workers.supervisor", "workers.node_supervisor"], ids=["first", "other"])
def test_the_death_of_either_node_s_supervisor_costs_one_attempt(site: Site, module: str) -> None:
    job_id = site.pitwall.submit(**TWO_NODES, **ENDLESS)
    num_attempts = len(site.wait_running(job_id)["attempts"])
    (supervisor,) = site.find(module)
    supervisor.kill()
    job = site.wait_running(job_id, num_attempts + 1)
    assert job["attempts"][num_attempts - 1]["outcome"] == "lost"
    assert site.hosts_in_use() == 2
    assert len(site.find("engine run")) == 2
    site.pitwall.client.post(f"/jobs/{job_id}/cancel").raise_for_status()
    site.pitwall.wait_for(job_id, "cancelled")
    site.wait_clean()


def test_what_failed_on_another_node_is_told(site: Site) -> None:
    job_id = site.pitwall.submit(**TWO_NODES, **ENDLESS)
    site.wait_running(job_id)
    (engine,) = [process for process in site.find("engine run") if "--node-rank 1" in _command(process)]
    engine.kill()
    job = site.pitwall.wait_for(job_id, "failed")
    message = job["attempts"][-1]["error"]["message"]
    assert "Node 1 (" in message
    assert "SIGKILL" in message
    site.wait_clean()


def test_the_real_engine_trains_on_two_hosts(pitwall: Pitwall) -> None:
    with second_host(pitwall) as site:
        job = pitwall.wait_for(pitwall.submit(**TWO_NODES, num_steps=20, num_threads=1), "succeeded")
        attempt = job["attempts"][-1]
        assert len(pitwall.curve(job["id"])["x"]) == 20
        assert (attempt["hardware"]["num_nodes"], job["summary"]["num_samples"]) == (2, 20 * 2 * 16)
        site.wait_clean()
