"""What a fresh installation shows by itself: its demo study, run by real engines, ends on a board with verdicts."""

from pathlib import Path
from typing import Any

from tests.system.pitwall import Pitwall, running, wait_until


def test_the_first_runs_study_ends_on_a_leaderboard_with_verdicts(tmp_path: Path) -> None:
    with running(tmp_path / "var", from_nothing=True) as pitwall:
        study = wait_until(lambda: _ended_study(pitwall), 300, "the demo study")
        [board] = pitwall.client.get("/leaderboard").json()["boards"]
    assert [len(row["jobs"]) for row in study["rows"]] == [5, 5, 5]
    assert "at equal loss" in study["headline"]
    assert study["devices"] == [board["device_name"]]
    rows = {_words(row["configuration"]): row for row in board["rows"]}
    assert {name: row["n"] for name, row in rows.items()} == {"8 x 8 fp32": 5, "64 x 1 fp32": 5, "64 x 1 bf16-mixed": 5}
    assert rows["8 x 8 fp32"]["verdict"] == "baseline"
    in_one_piece = rows["64 x 1 fp32"]
    assert in_one_piece["verdict"] == "equal"
    assert in_one_piece["rank"] is not None
    assert abs(in_one_piece["loss"]["difference"]) < 0.01 * board["loss_margin"]  # the same samples, summed otherwise
    assert rows["64 x 1 bf16-mixed"]["loss"]["n"] == 5
    assert all(row["cells"]["steady_step_time_ms"]["interval"] for row in rows.values())


def _ended_study(pitwall: Pitwall) -> dict[str, Any] | None:
    [line] = pitwall.client.get("/studies").json()
    return None if line["num_open"] else pitwall.client.get(f"/studies/{line['id']}").json()


def _words(configuration: dict[str, Any]) -> str:
    return "{micro_batch_size} x {grad_accum_steps} {precision}".format(**configuration)
