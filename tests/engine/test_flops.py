import pytest
import torch
from engine_runs import train
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from jobs.contract.facts import Ceilings, DeviceFacts
from jobs.contract.spec import TrainSpec
from workers.engine.apart import measure_flops
from workers.engine.ceilings import measure_ceilings
from workers.engine.data import load_dataset
from workers.engine.data.dataset import Split
from workers.engine.describe import describe
from workers.engine.flops import count_flops_per_sample, model_flops_utilization, transformer_flops_per_token
from workers.engine.models import build_model
from workers.engine.peaks import datasheet_of, peak_bytes_per_s, peak_flops_per_s, peak_of
from workers.engine.report import Report


def count(model_name, dataset_name):
    dataset = load_dataset(dataset_name)
    with torch.device("meta"):
        model = build_model(model_name, dataset)
    return model, count_flops_per_sample(model, dataset.train, with_backward=True)


def test_a_transformers_count_is_the_formulas():
    model, per_sample = count("gpt-tiny", "stdlib-text")
    in_products = [p for name, p in model.named_parameters() if p.dim() == 2 and "embedding" not in name]
    num_parameters = sum(parameter.numel() for parameter in in_products) - model.positions.numel()
    per_token = transformer_flops_per_token(num_parameters, num_layers=2, num_heads=4, head_dim=32, sequence=128)
    assert per_sample == 128 * per_token


def test_a_perceptrons_count_is_that_of_its_matrices():
    _model, per_sample = count("mlp", "digits")
    forward = 2 * (64 * 128 + 128 * 10)
    assert per_sample == 3 * forward - 2 * 64 * 128  # nobody asks for the input's gradient


def test_a_convolutions_count_is_the_same_as_on_real_tensors():
    _model, per_sample = count("convnet", "digits")
    dataset = load_dataset("digits")
    model = build_model("convnet", dataset)
    with FlopCounterMode(display=False) as counter:
        model(dataset.train.samples[:4]).sum().backward()
    assert per_sample == counter.get_total_flops() / 4


def test_an_lstm_and_attention_are_counted_although_real_cpu_tensors_count_zero():
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(8, 16, batch_first=True)

        def forward(self, x):
            return self.lstm(x)[0]

    with torch.device("meta"):
        model = Recurrent()
    steps, forward_per_step = 5, 2 * 4 * 16 * (8 + 16)
    counted = count_flops_per_sample(model, Split(torch.zeros(3, steps, 8), torch.zeros(3)), with_backward=False)
    assert counted == steps * forward_per_step


def test_inference_counts_the_forward_pass_alone():
    dataset = load_dataset("digits")
    with torch.device("meta"):
        model = build_model("mlp", dataset)
    assert count_flops_per_sample(model, dataset.train, with_backward=False) == 2 * (64 * 128 + 128 * 10)


def test_a_run_stores_flops_and_leaves_an_unknown_peak_unknown(baseline):
    summary = baseline.summary
    per_sample = 3 * 2 * (64 * 128 + 128 * 10) - 2 * 64 * 128
    assert summary.flops_per_step == 16 * per_sample
    assert summary.flops_per_s == pytest.approx(per_sample * summary.samples_per_s)
    assert summary.mfu is None


def test_mfu_is_measured_against_a_known_peak(monkeypatch):
    monkeypatch.setattr("workers.engine.apart.peak_flops_per_s", lambda name, precision: 1e12)
    summary = train(num_steps=3).summary
    assert summary.mfu == pytest.approx(summary.flops_per_s / 1e12)


def test_the_peak_is_that_of_all_devices_also_where_one_process_has_them(monkeypatch):
    monkeypatch.setattr("workers.engine.apart.peak_flops_per_s", lambda name, precision: 1e12)
    for parallelism in ("data_parallel", "ddp"):
        report = Report(None)
        report.summary.samples_per_s = 100.0
        measure_flops(TrainSpec(model="mlp", parallelism=parallelism, num_devices=4), load_dataset("digits"), report)
        assert report.summary.mfu == pytest.approx(report.summary.flops_per_s / 4e12)


def test_a_model_that_looks_at_values_is_not_counted_and_says_so(monkeypatch):
    class Looking(nn.Module):
        def forward(self, x):
            return x * x.sum().item()

    monkeypatch.setattr("workers.engine.flops.build_model", lambda *_: Looking())
    ran = train(num_steps=2)
    (warned,) = [event for event in ran.events if event.type == "warning"]
    assert warned.finding.code == "flops_unknown"
    assert ran.summary.flops_per_step is None


def test_utilization_needs_a_peak():
    assert model_flops_utilization(1e6, 1e3, 1e10) == 0.1
    with pytest.raises(ValueError, match="positive"):
        model_flops_utilization(1e6, 1e3, 0)


@pytest.mark.parametrize(
    ("name", "precision", "tera"),
    [
        ("NVIDIA H200", "bf16-mixed", 989),
        ("NVIDIA H100 80GB HBM3", "tf32", 494.5),
        ("NVIDIA H100 PCIe", "fp8", 1513),
        ("NVIDIA A100-SXM4-80GB", "fp32", 19.5),
        ("Tesla T4", "fp16-mixed", 65),
        ("NVIDIA GeForce RTX 4090", "fp16-true", 165.2),
    ],
)
def test_peaks_are_dense_and_by_precision(name, precision, tera):
    assert peak_flops_per_s(name, precision) == tera * 1e12


@pytest.mark.parametrize(
    "name",
    ["NVIDIA H100 NVL", "NVIDIA A10G", "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "NVIDIA GeForce RTX 4090 Laptop GPU", "CPU"],
)
def test_a_variant_that_is_not_in_the_table_is_unknown(name):
    assert peak_of(name) is None
    assert peak_flops_per_s(name, "fp32") is None
    assert peak_bytes_per_s(name) is None


def test_an_arithmetic_that_the_hardware_lacks_has_no_peak():
    assert peak_flops_per_s("Tesla T4", "bf16-mixed") is None
    assert peak_bytes_per_s("Tesla T4") == 320e9


def test_ceilings_of_the_cpu_are_measured_per_arithmetic_it_has():
    facts = DeviceFacts(kind="cpu", name="CPU", memory_bytes=1, has_native_bf16=False)
    ceilings = measure_ceilings(facts, budget_s=0.0)
    assert list(ceilings.matmul_flops_per_s) == ["fp32"]
    assert ceilings.matmul_flops_per_s["fp32"] > 1e8
    assert ceilings.copy_bytes_per_s > 1e8


def test_describe_measures_ceilings_only_when_asked_to(monkeypatch):
    measured = Ceilings(matmul_flops_per_s={"fp32": 1e12}, copy_bytes_per_s=1e10)
    monkeypatch.setattr("workers.engine.ceilings.measure_ceilings", lambda device: measured)
    (cpu, *_gpus) = describe(with_ceilings=True)["facts"]["devices"]
    assert Ceilings.model_validate(cpu["ceilings"]) == measured
    assert describe()["facts"]["devices"][0]["ceilings"] is None


def test_a_residual_network_and_gpt2_count_what_the_literature_says():
    for name, dataset_name, expected in (
        ("resnet18", "synthetic-images", 10.65e9),
        ("gpt2", "synthetic-tokens", 96.7e9),
    ):
        _model, per_sample = count(name, dataset_name)  # at 224 x 224, and at 128 tokens
        assert per_sample == pytest.approx(expected, rel=0.01)


def test_a_datasheet_names_only_what_it_has():
    sheet = datasheet_of("Tesla T4")
    assert sheet.matmul_flops_per_s == {"fp32": 8.1e12, "fp16": 65e12}
    assert sheet.bytes_per_s == 320e9
    assert datasheet_of("Some GPU") is None
