"""The whole program with the measurement that the other tests leave out, because it wants a host that idles."""

from pathlib import Path

from tests.system.pitwall import running, wait_until


def test_an_idle_worker_measures_what_its_devices_reach_and_keeps_it_over_a_restart(tmp_path: Path) -> None:
    with running(tmp_path / "var", PITWALL_MEASURE_CEILINGS="true") as pitwall:

        def ceilings() -> object:
            return pitwall.client.get("/workers").json()["workers"][0]["devices"][0]["ceilings"]

        reached = wait_until(ceilings, 120, "ceilings")
        assert reached["matmul_flops_per_s"]["fp32"] > 1e8
        pitwall.stop()
        (kept,) = (tmp_path / "var" / "ceilings").iterdir()
        written_at = kept.stat().st_mtime_ns
        pitwall.start()
        assert wait_until(ceilings, 30, "the same ceilings") == reached
        assert kept.stat().st_mtime_ns == written_at
