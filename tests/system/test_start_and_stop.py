"""`manage.py run` starts everything, says so in words when it cannot, and leaves nothing behind."""

import threading
from pathlib import Path

import httpx

from tests.prepared import copy_migrated
from tests.system.pitwall import Pitwall, running

ENDLESS = {"model": "mlp", "dataset": "digits", "num_steps": 100_000_000, "device": "cpu"}


def test_ctrl_c_ends_everything_within_five_seconds_and_the_job_goes_on_at_the_next_start(tmp_path: Path) -> None:
    with running(tmp_path / "var", from_nothing=True) as pitwall:
        _cancel_all(pitwall)
        job_id = pitwall.submit(**ENDLESS)
        pitwall.wait_for(job_id, "running")
        viewer = threading.Thread(target=_watch, args=(pitwall, job_id), daemon=True)
        viewer.start()
        assert pitwall.stop() < 5
        pitwall.start()
        assert len(pitwall.wait_for(job_id, "running")["attempts"]) == 2
        pitwall.client.post(f"/jobs/{job_id}/cancel")
        pitwall.wait_for(job_id, "cancelled")


def test_a_second_start_on_the_same_port_is_refused_in_one_sentence(pitwall: Pitwall) -> None:
    result = pitwall.manage("run", "--port", str(pitwall.port), check=False)
    assert result.returncode != 0
    assert f"Port {pitwall.port} on 127.0.0.1 is taken" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_second_start_on_the_same_folder_is_refused_in_one_sentence(pitwall: Pitwall) -> None:
    result = pitwall.manage("run", "--port", "0", check=False)
    assert result.returncode != 0
    assert f"Another Pitwall is using {pitwall.var}" in result.stderr
    assert "Traceback" not in result.stderr


def test_the_first_run_queues_a_study_with_paired_seeds(tmp_path: Path) -> None:
    pitwall = Pitwall(tmp_path / "var")
    copy_migrated(pitwall.var)
    pitwall.manage("setup", "--demo")
    runs = (
        "SELECT study_place, COUNT(*), COUNT(DISTINCT json_extract(spec, '$.seed')) FROM jobs_job GROUP BY 1 ORDER BY 1"
    )
    assert pitwall.sql(runs) == [(0, 5, 5), (1, 5, 5), (2, 5, 5)]
    assert pitwall.sql("SELECT left_out FROM jobs_study") == [("[]",)]
    pitwall.manage("setup", "--demo")
    assert pitwall.sql("SELECT COUNT(*) FROM jobs_job") == [(15,)]


def _cancel_all(pitwall: Pitwall) -> None:
    for job in pitwall.client.get("/jobs").json()["jobs"]:
        pitwall.client.post(f"/jobs/{job['id']}/cancel")


def _watch(pitwall: Pitwall, job_id: int) -> None:
    """An open page: the event stream of one job."""
    try:
        with httpx.stream("GET", f"{pitwall.url}/live/?topics=job:{job_id}", timeout=60) as response:
            for _ in response.iter_lines():
                pass
    except httpx.HTTPError:
        return
