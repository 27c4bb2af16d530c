"""The arithmetic that was asked for is the arithmetic that ran."""

import sys
from types import ModuleType

import pytest
import torch
from engine_runs import train
from torch import nn

from jobs.contract.catalog import Target
from jobs.contract.errors import RefusedSpec
from jobs.contract.spec import Precision, TrainSpec
from workers.engine.fp8 import convert_to_fp8, layers_beside_fp8
from workers.engine.losses import loss_for
from workers.engine.precision import Arithmetic, apply_precision, build_scaler
from workers.engine.step import build_loss, build_step
from workers.engine.update import Update

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("precision", "dtype", "tolerance"),
    [
        ("fp32", "float32", 1e-6),
        ("bf16-mixed", "bfloat16", 0.02),
        ("fp16-mixed", "float16", 0.01),
        ("bf16-true", "bfloat16", 0.1),
        ("fp16-true", "float16", 0.02),
    ],
)
def test_the_observed_dtype_is_the_one_asked_for_and_the_loss_stays_near(baseline, precision, dtype, tolerance):
    # Adam's epsilon of 1e-8 is zero in fp16, so fp16 weights are trained with SGD.
    fields = {"optimizer": "sgd", "learning_rate": 0.1} if precision == "fp16-true" else {}
    plain = train(**fields) if fields else baseline
    ran = train(precision=precision, **fields)
    assert ran.summary.observed_dtype == dtype
    assert ran.summary.fp32_arithmetic == "ieee"
    assert ran.losses == pytest.approx(plain.losses, abs=tolerance)
    assert ran.summary.final_eval_loss == pytest.approx(plain.summary.final_eval_loss, abs=tolerance)


@pytest.mark.parametrize(("precision", "dtype"), [("bf16-true", torch.bfloat16), ("fp16-true", torch.float16)])
def test_true_precision_stores_weights_and_the_optimizers_state_in_16_bits(precision, dtype):
    spec = TrainSpec(model="mlp", dataset="digits", num_steps=1, precision=precision)
    model = Arithmetic.of(spec, CPU).prepare(nn.Linear(2, 2))
    update = Update(spec, model, None)
    model.weight.grad = torch.ones_like(model.weight)
    update.optimizer.step()
    assert model.weight.dtype is dtype
    assert update.optimizer.state[model.weight]["exp_avg"].dtype is dtype


def test_a_hundred_small_updates_leave_a_bfloat16_weight_where_it_was():
    for dtype, expected in ((torch.bfloat16, 1.0), (torch.float32, 0.9)):
        weight = nn.Parameter(torch.ones((), dtype=dtype))
        optimizer = torch.optim.SGD([weight], lr=1e-3)
        for _ in range(100):
            weight.grad = torch.ones_like(weight)
            optimizer.step()
        assert weight.item() == pytest.approx(expected, abs=1e-5)


def test_tf32_is_set_and_read_back():
    assert apply_precision(Precision.TF32, CPU) == "tf32"
    assert torch.get_float32_matmul_precision() == "high"
    assert apply_precision(Precision.BF16_MIXED, CPU) == "ieee"
    assert torch.get_float32_matmul_precision() == "highest"


def test_only_fp16_mixed_has_a_gradient_scaler():
    assert [name.value for name in Precision if build_scaler(TrainSpec(precision=name), CPU)] == ["fp16-mixed"]


@pytest.mark.parametrize(("asked", "expected"), [(None, 65536.0), (1024.0, 1024.0)])
def test_the_scaler_begins_with_the_scale_that_was_asked_for(asked, expected):
    scaler = build_scaler(TrainSpec(precision="fp16-mixed", initial_loss_scale=asked), CPU)
    assert scaler.get_scale() == expected


@pytest.mark.parametrize("impl", ["default", "foreach", "fused"])
@pytest.mark.parametrize("clip", [None, 1.0])
def test_skipped_steps_are_counted_and_leave_the_weights_alone(impl, clip):
    spec = TrainSpec(
        model="mlp", num_steps=4, precision="fp16-mixed", optimizer_impl=impl, grad_clip_norm=clip, lr_schedule="linear"
    )
    model = nn.Linear(4, 3)
    update = Update(spec, model, torch.amp.GradScaler("cpu"))
    good, target = torch.ones(2, 4), torch.zeros(2, dtype=torch.long)
    batches = iter([(inputs, target) for inputs in (good, good * float("inf"), good * float("inf"), good)])
    step = build_step(
        model, build_loss(Arithmetic.of(spec, CPU).build_forward(model), loss_for(Target.CLASS)), update, batches, 1
    )
    weights = []
    for _ in range(4):
        step()
        weights.append(model.weight.detach().clone())
    assert update.num_skipped_steps == 2
    assert torch.equal(weights[0], weights[1])
    assert torch.equal(weights[1], weights[2])
    assert not torch.equal(weights[2], weights[3])
    assert update.scaler.get_scale() == 2.0**14  # halved twice


def test_a_run_tells_its_skipped_steps():
    assert train(precision="fp16-mixed", num_steps=3).summary.num_skipped_steps == 0
    # Huge weights give gradients above 1, which overflow once they are scaled by 65,536.
    ran = train(precision="fp16-mixed", num_steps=6, learning_rate=100, optimizer="sgd")
    assert 1 < ran.summary.num_skipped_steps < 6


def test_clipping_sees_the_gradients_as_they_are_not_as_they_are_scaled():
    fields = {"optimizer": "sgd", "learning_rate": 0.5, "grad_clip_norm": 0.1, "num_steps": 8}
    plain, scaled = train(**fields), train(**fields, precision="fp16-mixed")
    assert scaled.losses == pytest.approx(plain.losses, abs=5e-3)


def test_fp8_is_refused_where_no_layer_fits():
    with pytest.raises(RefusedSpec, match="No linear layer of this model"):
        convert_to_fp8(nn.Sequential(nn.Linear(8, 32), nn.Linear(32, 10)))


def test_fp8_asks_torchao_for_the_layers_that_fit_and_tells_the_others(monkeypatch):
    asked = []

    def convert(model, *, module_filter_fn):
        asked.extend(name for name, layer in model.named_children() if module_filter_fn(layer, name))
        return model

    package, module = ModuleType("torchao"), ModuleType("torchao.float8")
    module.convert_to_float8_training = convert
    monkeypatch.setitem(sys.modules, "torchao", package)
    monkeypatch.setitem(sys.modules, "torchao.float8", module)
    model = nn.Sequential(nn.Linear(16, 32), nn.Linear(32, 10))
    assert convert_to_fp8(model) is model
    assert (asked, layers_beside_fp8(model)) == (["0"], ["1"])
