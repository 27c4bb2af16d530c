"""From a submit over the broker, a worker, a supervisor and the engine back into the database."""

import json
from typing import Any

import psutil
import pytest

from jobs.contract.keys import environment_key, workload_key
from jobs.contract.spec import parse_spec
from tests.system.pitwall import Pitwall, wait_until

MLP: dict[str, Any] = {"model": "mlp", "dataset": "digits", "micro_batch_size": 64, "device": "cpu"}
ENDLESS = MLP | {"num_steps": 100_000_000}
DIVERGING: dict[str, Any] = {
    "model": "gpt-tiny",
    "dataset": "stdlib-text",
    "micro_batch_size": 4,
    "num_steps": 30,
    "optimizer": "sgd",
    "learning_rate": 100,
}


def test_a_submitted_job_runs_and_its_results_are_those_that_the_engine_reported(pitwall: Pitwall) -> None:
    job = pitwall.wait_for(pitwall.submit(**MLP, num_steps=300), "succeeded")
    (attempt,) = job["attempts"]
    lines = (pitwall.var / "attempts" / str(attempt["id"]) / "events.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    reported = [
        value for event in events if event["type"] == "points" for value in event["series"].get("train_loss", [])
    ]
    assert events[-1]["summary"] == job["summary"]
    assert job["summary"]["num_steps"] == 300
    curve = pitwall.curve(job["id"])
    assert curve["x"] == list(range(1, 301))
    assert curve["y"] == reported
    assert curve["y"][-1] < curve["y"][0]


def test_a_finished_job_carries_the_keys_that_say_what_it_may_be_compared_with(pitwall: Pitwall) -> None:
    in_steps = pitwall.wait_for(pitwall.submit(**MLP, num_steps=44), "succeeded")["attempts"][-1]
    in_epochs = pitwall.wait_for(pitwall.submit(**MLP, num_epochs=2, seed=3), "succeeded")["attempts"][-1]
    longer = pitwall.wait_for(pitwall.submit(**MLP, num_steps=45), "succeeded")["attempts"][-1]
    resolved = parse_spec(in_steps["resolved_spec"])
    assert in_steps["workload_key"] == workload_key(resolved, in_steps["dataset_revision"])
    assert in_steps["environment_key"] == environment_key(in_steps["device_name"], in_steps["versions"])
    assert in_epochs["workload_key"] == in_steps["workload_key"]
    assert longer["workload_key"] != in_steps["workload_key"]


def test_two_ddp_ranks_run_under_one_supervisor(pitwall: Pitwall) -> None:
    job = pitwall.wait_for(pitwall.submit(**MLP, num_steps=20, parallelism="ddp", num_devices=2), "succeeded")
    assert job["summary"]["num_samples"] == 20 * 2 * 64


def test_a_diverging_job_ends_as_diverged_and_says_at_which_step(pitwall: Pitwall) -> None:
    job = pitwall.wait_for(pitwall.submit(**DIVERGING), "diverged")
    error = job["attempts"][-1]["error"]
    assert error["step"] >= 1
    assert f"step {error['step']}" in error["message"]


def test_an_engine_that_raises_ends_its_job_as_failed_with_the_end_of_its_traceback(pitwall: Pitwall) -> None:
    job_id = pitwall.submit(**ENDLESS)
    pitwall.wait_for(job_id, "running")
    (engine,) = pitwall.processes_running("workers.engine run")
    engine.send_signal(2)  # raises KeyboardInterrupt wherever the engine is
    job = pitwall.wait_for(job_id, "failed")
    assert "KeyboardInterrupt" in job["attempts"][-1]["error"]["traceback"]


def test_a_killed_engine_ends_its_job_as_failed_and_the_next_job_runs(pitwall: Pitwall) -> None:
    job_id = pitwall.submit(**ENDLESS)
    pitwall.wait_for(job_id, "running")
    (engine,) = pitwall.processes_running("workers.engine run")
    engine.kill()
    job = pitwall.wait_for(job_id, "failed")
    assert "SIGKILL" in job["attempts"][-1]["error"]["message"]
    pitwall.wait_for(pitwall.submit(**MLP, num_steps=5), "succeeded")


def test_an_engine_that_no_longer_watches_its_time_limit_is_ended_by_its_supervisor(pitwall: Pitwall) -> None:
    job_id = pitwall.submit(**ENDLESS, time_limit_s=4)
    (engine,) = wait_until(lambda: pitwall.processes_running("workers.engine run"), what="the engine")
    engine.suspend()  # whatever it does by now, it will not look at its own clock
    job = pitwall.wait_for(job_id, "timed_out")
    assert not _lives(engine)
    error = job["attempts"][-1]["error"]
    assert error["type"] == "TimedOut"
    assert error["message"].startswith("The time limit of 4 s has passed.")
    pitwall.wait_for(pitwall.submit(**MLP, num_steps=5), "succeeded")


def test_cancelling_a_running_job_ends_its_processes_and_keeps_its_points(pitwall: Pitwall) -> None:
    job_id = pitwall.submit(**ENDLESS)
    wait_until(lambda: pitwall.job(job_id)["state"] == "running" and pitwall.curve(job_id)["y"], what="points")
    response = pitwall.client.post(f"/jobs/{job_id}/cancel", json={"reason": "wrong data set"})
    assert response.status_code == 200
    job = pitwall.wait_for(job_id, "cancelled")
    assert job["cancel_reason"] == "wrong data set"
    assert pitwall.curve(job_id)["y"]
    assert not pitwall.processes_running("workers.engine run")


def test_cancelling_a_waiting_job_ends_it_at_once(pitwall: Pitwall) -> None:
    running, waiting = pitwall.submit(**ENDLESS), pitwall.submit(**ENDLESS)
    pitwall.wait_for(running, "running")
    assert pitwall.client.post(f"/jobs/{waiting}/cancel").json()["state"] == "cancelled"
    assert pitwall.client.post(f"/jobs/{waiting}/cancel").status_code == 409
    pitwall.client.post(f"/jobs/{running}/cancel")
    pitwall.wait_for(running, "cancelled")


def test_neither_the_web_nor_the_celery_worker_loads_torch(pitwall: Pitwall) -> None:
    pitwall.client.get("/leaderboard").raise_for_status()
    names = ("uvicorn", "celery", "workers.supervisor")
    job_id = pitwall.submit(**ENDLESS)
    pitwall.wait_for(job_id, "running")
    for name in names:
        for process in pitwall.processes_running(name):
            loaded = {mapped.path for mapped in process.memory_maps()}
            assert not [path for path in loaded if "libtorch" in path], f"{name} has loaded torch"
    (engine,) = pitwall.processes_running("workers.engine run")
    assert [mapped.path for mapped in engine.memory_maps() if "libtorch" in mapped.path], "the check finds nothing"
    pitwall.client.post(f"/jobs/{job_id}/cancel")
    pitwall.wait_for(job_id, "cancelled")


def test_a_killed_celery_worker_does_not_touch_the_running_job(pitwall: Pitwall) -> None:
    job_id = pitwall.submit(**ENDLESS)
    wait_until(lambda: pitwall.job(job_id)["state"] == "running" and pitwall.curve(job_id)["y"], what="points")
    (supervisor,) = pitwall.processes_running("workers.supervisor")
    for process in pitwall.processes_running("celery"):
        process.kill()
    steps = pitwall.job(job_id)["attempts"][-1]["last_step"]
    wait_until(lambda: pitwall.job(job_id)["attempts"][-1]["last_step"] > steps, what="further points")
    assert supervisor.is_running()
    wait_until(lambda: pitwall.processes_running("celery"), what="a new worker")
    pitwall.client.post(f"/jobs/{job_id}/cancel")
    assert len(pitwall.wait_for(job_id, "cancelled")["attempts"]) == 1
    pitwall.wait_for(pitwall.submit(**MLP, num_steps=5), "succeeded")


def test_a_killed_supervisor_takes_its_engine_along_and_its_job_goes_on_from_a_checkpoint(pitwall: Pitwall) -> None:
    job_id = pitwall.submit(**MLP, num_steps=30_000, checkpoint_every_steps=1000)

    def num_steps_done() -> int:
        attempts = pitwall.job(job_id)["attempts"]
        return int(attempts[-1]["last_step"]) if attempts else 0

    wait_until(lambda: num_steps_done() > 3000, what="checkpoints")
    (supervisor,) = pitwall.processes_running("workers.supervisor")
    (engine,) = pitwall.processes_running("workers.engine run")
    supervisor.kill()
    wait_until(lambda: not _lives(engine), 1, "the engine's end")
    lost, resumed = pitwall.wait_for(job_id, "succeeded")["attempts"]
    assert lost["outcome"] == "lost"
    assert resumed["resumed_at_step"] >= 2000
    curve = pitwall.curve(job_id)
    assert curve["seams"] == [resumed["resumed_at_step"]]
    assert curve["x"] == list(range(1, 30_001))


def test_a_submit_succeeds_without_redis_and_the_job_runs_when_redis_is_back(pitwall: Pitwall) -> None:
    (broker,) = pitwall.processes_running("redis-server")
    broker.suspend()
    try:
        job_id = pitwall.submit(**MLP, num_steps=5)
    finally:
        broker.kill()  # what it held is gone; the launcher starts an empty one
    pitwall.wait_for(job_id, "succeeded", timeout_s=60)


@pytest.mark.parametrize("field", ["precision", "model", "num_steps"])
def test_a_wrong_field_is_refused_by_name_and_nothing_is_queued(pitwall: Pitwall, field: str) -> None:
    before = pitwall.client.get("/jobs").json()["jobs"]
    response = pitwall.client.post("/jobs", json=MLP | {"num_steps": 5} | {field: "nonsense"})
    assert response.status_code == 422
    assert [error["field"] for error in response.json()["errors"]] == [field]
    assert [job["id"] for job in pitwall.client.get("/jobs").json()["jobs"]] == [job["id"] for job in before]


def _lives(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
