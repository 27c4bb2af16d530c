"""Jobs that start in a spare, and spares that end: on an installation of its own, which keeps one."""

from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from tests.system.pitwall import Pitwall, running, wait_until

MLP: dict[str, Any] = {"model": "mlp", "dataset": "digits", "micro_batch_size": 64, "device": "cpu"}
ENDLESS = MLP | {"num_steps": 100_000_000}


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pitwall]:
    with running(tmp_path_factory.mktemp("warm") / "var", PITWALL_SPARES="1") as pitwall:
        yield pitwall
        wait_for_spare(pitwall)  # the end of the installation fails where a process is left


def wait_for_spare(pitwall: Pitwall) -> list[psutil.Process]:
    """The supervisor and the engine that wait."""
    (engine,) = wait_until(pitwall.warm_spares, 90, "a warm spare")
    return [engine.parent(), engine]


def lives(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def wait_for_points(pitwall: Pitwall, job_id: int) -> None:
    wait_until(lambda: pitwall.job(job_id)["state"] == "running" and pitwall.curve(job_id)["y"], what="points")


def test_a_job_on_an_idle_worker_starts_in_the_spare_and_another_gets_warm_afterwards(warm: Pitwall) -> None:
    _supervisor, engine = wait_for_spare(warm)
    job = warm.wait_for(warm.submit(**MLP, num_steps=300), "succeeded")
    assert job["summary"]["started_warm"] is True
    assert warm.curve(job["id"])["x"] == list(range(1, 301))
    _supervisor, next_engine = wait_for_spare(warm)
    assert next_engine != engine


def test_a_job_of_several_ranks_starts_cold_all_the_same(warm: Pitwall) -> None:
    wait_for_spare(warm)
    job = warm.wait_for(warm.submit(**MLP, num_steps=5, parallelism="ddp", num_devices=2), "succeeded")
    assert job["summary"]["started_warm"] is False


def test_no_spare_gets_warm_beside_a_job_and_a_cancelled_one_leaves_nothing(warm: Pitwall) -> None:
    tree = wait_for_spare(warm)
    job_id = warm.submit(**ENDLESS)
    wait_for_points(warm, job_id)
    assert warm.processes_running("workers.supervisor") == tree[:1]
    assert all(map(lives, tree))
    warm.client.post(f"/jobs/{job_id}/cancel")
    warm.wait_for(job_id, "cancelled")
    wait_until(lambda: not any(map(lives, tree)), what="the end of the job's processes")


def test_a_job_starts_cold_where_the_engine_that_waited_has_died(warm: Pitwall) -> None:
    _supervisor, engine = wait_for_spare(warm)
    engine.kill()
    wait_until(lambda: not lives(engine), what="the engine's end")
    job = warm.wait_for(warm.submit(**MLP, num_steps=5), "succeeded")
    assert job["summary"]["started_warm"] is False
    assert len(job["attempts"]) == 1


def test_a_job_starts_where_a_whole_spare_has_died_and_another_gets_warm_later(warm: Pitwall) -> None:
    spare = wait_for_spare(warm)
    spare[0].kill()
    wait_until(lambda: not any(map(lives, spare)), what="the spare's end")
    assert len(warm.wait_for(warm.submit(**MLP, num_steps=5), "succeeded")["attempts"]) == 1
    assert wait_for_spare(warm) != spare


def test_a_killed_worker_takes_its_idle_spare_along(warm: Pitwall) -> None:
    spare = wait_for_spare(warm)
    for process in warm.processes_running("celery"):
        process.kill()
    wait_until(lambda: not any(map(lives, spare)), what="the end of the spare")
    assert wait_for_spare(warm) != spare, "the next worker has its own"


def test_a_job_that_started_warm_outlives_its_worker_and_has_one_attempt(warm: Pitwall) -> None:
    tree = wait_for_spare(warm)
    job_id = warm.submit(**ENDLESS)
    wait_for_points(warm, job_id)
    for process in warm.processes_running("celery"):
        process.kill()
    steps = warm.job(job_id)["attempts"][-1]["last_step"]
    wait_until(lambda: warm.processes_running("celery"), what="a new worker")
    wait_until(lambda: warm.job(job_id)["attempts"][-1]["last_step"] > steps, what="further points")
    assert all(map(lives, tree))
    warm.client.post(f"/jobs/{job_id}/cancel")
    assert len(warm.wait_for(job_id, "cancelled")["attempts"]) == 1
