import os
import sys
import time
from types import SimpleNamespace

import pytest
import torch
from engine_runs import Recording, train

from jobs.contract.metrics import Summary
from workers.engine import telemetry as telemetry_module
from workers.engine.memory import Peaks
from workers.engine.nvml import Gpu, Gpus, NvmlMissing, name_harmful_reasons
from workers.engine.report import Report
from workers.engine.resources import Resources, store_resources
from workers.engine.telemetry import Telemetry, name_spoilers, open_gpus, worst_of


class FakeNvml:
    """An H100 that somebody else uses too, as the pynvml module tells it."""

    NVML_TEMPERATURE_GPU = NVML_CLOCK_SM = 0
    NVML_CLOCK_MEM = 2
    NVMLError = type("NVMLError", (Exception,), {})

    def __init__(self, pids=(), throttle=0):
        self.pids, self.throttle, self.millijoules, self.uuids = pids, throttle, 5_000, {"GPU-1"}

    def nvmlInit(self):
        pass

    def nvmlDeviceGetHandleByUUID(self, uuid):
        if uuid not in self.uuids:
            raise self.NVMLError("Not Found")
        return uuid

    def nvmlDeviceGetUtilizationRates(self, handle):
        return SimpleNamespace(gpu=97)

    def nvmlDeviceGetMemoryInfo(self, handle):
        return SimpleNamespace(used=3 * 2**30)

    def nvmlDeviceGetPowerUsage(self, handle):
        return 650_000

    def nvmlDeviceGetTemperature(self, handle, sensor):
        raise self.NVMLError("Not Supported")

    def nvmlDeviceGetClockInfo(self, handle, clock):
        return 2619 if clock == self.NVML_CLOCK_MEM else 1980

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle):
        return self.throttle

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        return [SimpleNamespace(pid=pid) for pid in self.pids]

    def nvmlDeviceGetTotalEnergyConsumption(self, handle):
        self.millijoules += 2_500
        return self.millijoules


@pytest.fixture
def nvml(monkeypatch):
    fake = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    return fake


def test_a_gpu_tells_all_that_it_supports(nvml):
    assert Gpu("GPU-1").read() == {
        "gpu_utilization_percent": 97,
        "gpu_memory_used_bytes": 3 * 2**30,
        "gpu_power_w": 650,
        "gpu_sm_clock_mhz": 1980,
        "gpu_memory_clock_mhz": 2619,
        "gpu_throttle_reasons": 0,
        "gpu_foreign_processes": 0,
    }


@pytest.mark.parametrize(
    ("pids", "num_foreign"),
    [((os.getpid(),), 0), ((os.getpid(), 1), 1), ((7,), 0), ((7, 8), 1)],
    ids=["alone", "with another", "alone by the host's ids", "with another by the host's ids"],
)
def test_processes_of_others_are_counted(nvml, pids, num_foreign):
    nvml.pids = pids
    assert Gpu("GPU-1").read()["gpu_foreign_processes"] == num_foreign


def test_energy_is_a_difference_over_the_steady_part(nvml):
    watched = Telemetry(Report(None), Gpus([Gpu("GPU-1")]), time.perf_counter())
    watched.begin_steady()
    energy_j, samples = watched.end_steady()
    assert energy_j == 2.5
    assert worst_of(samples)["gpu_memory_used_bytes"] == 3 * 2**30


def test_a_process_with_several_gpus_tells_of_all_of_them(nvml, monkeypatch):
    nvml.uuids = {"GPU-1", "GPU-2"}
    monkeypatch.setattr(nvml, "nvmlDeviceGetMemoryInfo", lambda uuid: SimpleNamespace(used=int(uuid[-1]) * 2**30))
    monkeypatch.setattr(nvml, "nvmlDeviceGetCurrentClocksThrottleReasons", lambda uuid: 0x08 * int(uuid[-1]) ** 2)
    uuids = {0: "1", 1: "2"}
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda device: SimpleNamespace(uuid=uuids[torch.device(device).index])
    )
    gpus = open_gpus([torch.device("cuda", 0), torch.device("cuda", 1)], Report(None))
    sample = gpus.read()
    assert (sample["gpu_memory_used_bytes"], sample["gpu_power_w"]) == (2 * 2**30, 1300)
    assert (sample["gpu_throttle_reasons"], sample["gpu_utilization_percent"]) == (0x28, 97)
    assert "gpu_temperature_c" not in sample
    assert gpus.read_energy_j() == 7.5 + 10.0


def test_a_gpu_that_nvml_does_not_know_is_said_with_its_reason(nvml, monkeypatch):
    with pytest.raises(NvmlMissing, match="Not Found"):
        Gpu("GPU-2")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _device: SimpleNamespace(uuid="2"))
    recording = Recording()
    assert open_gpus([torch.device("cuda", 0)], Report(recording)) is None
    (warned,) = recording.events
    assert warned.finding.sentence == "The GPU's power, clocks and use were not recorded: Not Found."


def test_nvml_that_is_not_installed_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(NvmlMissing, match="nvidia-ml-py is not installed"):
        Gpu("GPU-1")


def test_what_may_have_spoiled_a_run_is_named(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    calm = {"load_average": 1.9, "gpu_foreign_processes": 0, "gpu_throttle_reasons": 0x04}
    assert name_spoilers([calm], None) == []
    bad = {"load_average": 3.14, "gpu_foreign_processes": 2, "gpu_throttle_reasons": 0x48}
    assert name_spoilers([calm, bad], "It moved.") == [
        "The host's load average of 3.1 was above its 2 cores.",
        "Other processes were computing on the GPU (2).",
        "The GPU's clocks were held back: hardware slowdown, hardware thermal slowdown.",
        "The step time was not steady. It moved.",
    ]


def rank(rss, allocated, energy_j, **worst):
    return Resources(Peaks(rss, allocated, allocated), energy_j, worst)


def test_what_ranks_took_is_added_up_or_the_fullest_ones_and_all_may_spoil(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    summary = Summary()
    store_resources(
        summary,
        [
            rank(100, 7, 1.5, gpu_memory_used_bytes=10.0, load_average=1.0),
            rank(50, 9, 2.0, gpu_memory_used_bytes=20.0, load_average=1.0, gpu_throttle_reasons=64.0),
        ],
    )
    assert (summary.peak_rss_bytes, summary.peak_allocated_bytes, summary.peak_reserved_bytes) == (150, 9, 9)
    assert (summary.energy_j, summary.peak_device_used_bytes) == (3.5, 20)
    assert summary.spoiled_by == ["The GPU's clocks were held back: hardware thermal slowdown."]
    store_resources(summary, [rank(100, 7, 1.5), rank(50, 9, None)])
    assert (summary.energy_j, summary.peak_device_used_bytes) == (None, None)  # one rank's alone would mislead


def test_the_hosts_load_is_held_against_all_its_cores_and_not_against_those_of_this_process(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})
    assert name_spoilers([{"load_average": 40.0}], None) == []
    assert name_spoilers([{"load_average": 65.0}], None) != []


def test_a_power_cap_is_the_normal_state_of_a_busy_gpu():
    assert name_harmful_reasons(0x04) == []
    assert name_harmful_reasons(0x80) == ["power brake"]


def test_samples_are_points_on_wall_time_from_a_thread_of_their_own():
    recording = Recording()
    report = Report(recording)
    report.step = 7
    with Telemetry(report, None, time.perf_counter(), interval_s=0.01):
        deadline = time.monotonic() + 10
        while len(recording.events) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
    num_events = len(recording.events)
    assert num_events >= 3
    assert recording.events[0].steps == [7]
    walls = [event.wall_s[0] for event in recording.events]
    assert walls == sorted(walls)
    assert set(recording.events[0].series) == {
        "telemetry.cpu_percent",
        "telemetry.process_cpu_percent",
        "telemetry.process_rss_bytes",
        "telemetry.load_average",
    }
    time.sleep(0.05)
    assert len(recording.events) == num_events  # it ended with its block


def test_a_run_has_telemetry_and_is_stamped(monkeypatch):
    monkeypatch.setattr(telemetry_module.Telemetry.__init__, "__defaults__", (0.005,))
    ran = train(num_steps=60)
    assert ran.points("telemetry.process_rss_bytes")
    assert list(ran.points("train_loss")) == list(range(1, 61))
    assert ran.summary.spoiled_by is not None
    assert ran.summary.energy_j is None
