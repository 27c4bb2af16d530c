"""Optimizers, schedules, clipping, class weights: each option's effect, against torch's own where there is one."""

import math

import pytest
import torch
from engine_runs import DIGITS, train
from torch import nn

from jobs.contract.catalog import Target
from jobs.contract.choices import ClassWeights, LrSchedule
from jobs.contract.errors import RefusedSpec
from jobs.contract.spec import TrainSpec
from workers.engine.class_weights import balanced_weights, build_criterion
from workers.engine.data import load_dataset
from workers.engine.losses import loss_for
from workers.engine.optimizers import build_optimizer, current_learning_rate, learning_rate_factor
from workers.engine.step import build_gradients, build_loss, build_step
from workers.engine.update import Update


def spec(**fields):
    return TrainSpec(**DIGITS | {"optimizer": "sgd", "learning_rate": 1.0} | fields)


def updated(gradient, num_steps=1, **fields):
    """One weight of 1.0 and its `Update` after steps on a constant gradient."""
    model = nn.Linear(1, 1, bias=False)
    nn.init.ones_(model.weight)
    update = Update(spec(**fields), model, None)
    apply = update.build_apply()
    for _ in range(num_steps):
        model.weight.grad = torch.full((1, 1), gradient)
        apply()
    return model.weight, update


@pytest.mark.parametrize(
    ("optimizer", "torchs"),
    [
        ("sgd", torch.optim.SGD),
        ("adam", torch.optim.Adam),
        ("adamw", torch.optim.AdamW),
        ("rmsprop", torch.optim.RMSprop),
        ("adagrad", torch.optim.Adagrad),
    ],
)
def test_each_optimizer_updates_as_torchs_does(optimizer, torchs):
    weight, _update = updated(0.5, num_steps=3, optimizer=optimizer, learning_rate=0.1, weight_decay=0.2)
    other = nn.Parameter(torch.ones(1, 1))
    plain = torchs([other], lr=0.1, weight_decay=0.2)
    for _ in range(3):
        other.grad = torch.full((1, 1), 0.5)
        plain.step()
    assert torch.equal(weight, other)


@pytest.mark.parametrize("optimizer", ["rmsprop", "adagrad"])
def test_the_new_optimizers_lower_the_loss(optimizer):
    ran = train(optimizer=optimizer, num_steps=60, learning_rate=1e-2)
    assert ran.summary.final_train_loss < 0.7 * ran.losses[0]


def test_momentum_keeps_a_share_of_the_last_update():
    weight, _update = updated(0.1, num_steps=2, momentum=0.5)
    assert weight.item() == pytest.approx(1 - 0.1 - 0.15)


def test_weight_decay_is_resolved_to_what_the_optimizer_does():
    assert train(num_steps=1).started.spec.weight_decay == 0.01
    assert train(num_steps=1, optimizer="adam").started.spec.weight_decay == 0.0
    assert train(num_steps=1, weight_decay=0.3).started.spec.weight_decay == 0.3


@pytest.mark.parametrize("impl", ["foreach", "fused"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adamw", "adagrad"])
def test_an_implementation_is_really_used_and_trains_alike(optimizer, impl):
    fields = {"optimizer": optimizer, "learning_rate": 0.01, "num_steps": 8}
    plain, other = train(**fields), train(**fields, optimizer_impl=impl)
    assert other.losses == pytest.approx(plain.losses, abs=1e-5)
    built = build_optimizer(TrainSpec(**DIGITS | fields, optimizer_impl=impl), nn.Linear(2, 2))
    assert built.param_groups[0][impl] is True


def test_clipping_bounds_the_norm_of_the_gradients():
    assert updated(5.0, grad_clip_norm=0.25)[0].item() == pytest.approx(1 - 0.25)
    assert updated(0.1, grad_clip_norm=0.25)[0].item() == pytest.approx(1 - 0.1)


@pytest.mark.parametrize(("kept", "expected"), [(True, None), (False, 0.0)])
def test_gradients_are_dropped_or_filled_with_zeros(kept, expected):
    weight, _update = updated(5.0, zero_grad_set_to_none=kept)
    assert (weight.grad if weight.grad is None else weight.grad.item()) == expected


def test_gradients_filled_with_zeros_train_alike(baseline):
    assert train(zero_grad_set_to_none=False).losses == pytest.approx(baseline.losses, abs=1e-6)


def factors(schedule, num_steps, warmup_steps):
    return [
        learning_rate_factor(done, schedule=LrSchedule(schedule), num_steps=num_steps, warmup_steps=warmup_steps)
        for done in range(num_steps)
    ]


def test_a_schedule_rises_and_falls():
    assert factors("constant", 4, 0) == [1, 1, 1, 1]
    assert factors("constant", 4, 2) == [0.5, 1, 1, 1]
    assert factors("linear", 4, 0) == [1, 0.75, 0.5, 0.25]
    assert factors("linear", 6, 2) == [0.5, 1, 1, 0.75, 0.5, 0.25]
    assert factors("cosine", 4, 0) == pytest.approx([1, 0.5 + math.sqrt(0.125), 0.5, 0.5 - math.sqrt(0.125)])


def test_each_step_takes_the_rate_of_its_schedule():
    model = nn.Linear(1, 1, bias=False)
    update = Update(spec(num_steps=4, lr_schedule="linear", learning_rate=0.5), model, None)
    seen = []
    update.optimizer.register_step_pre_hook(lambda optimizer, *_: seen.append(current_learning_rate(optimizer)))
    batches = iter([(torch.ones(1, 1), torch.zeros(1, dtype=torch.long))] * 4)
    step = build_step(model, build_loss(model, loss_for(Target.CLASS)), update, batches, 1)
    for _ in range(4):
        step()
    assert seen == [0.5, 0.375, 0.25, 0.125]


def test_a_warmup_that_does_not_end_is_refused_once_the_steps_are_known():
    with pytest.raises(RefusedSpec, match="warm-up of 30 steps does not end within the run's 28 steps"):
        train(num_epochs=2, num_steps=None, micro_batch_size=100, warmup_steps=30)


def test_balanced_weights_let_every_class_count_the_same():
    labels = torch.tensor([0, 0, 0, 2])
    weights = balanced_weights(labels, 3)
    assert weights.tolist() == pytest.approx([4 / 9, 0, 4 / 3])
    assert weights[labels][labels == 0].sum() == weights[labels][labels == 2].sum()


def test_the_weighted_loss_moves_with_its_buffer_and_differs_from_the_plain_one():
    digits = load_dataset("digits")
    criterion = build_criterion(ClassWeights.BALANCED, digits, torch.device("meta"))
    assert criterion.weights.device.type == "meta"
    assert build_criterion(ClassWeights.NONE, digits, torch.device("cpu")) is loss_for(digits.target)
    plain, weighted = train(), train(class_weights="balanced")
    assert weighted.losses != plain.losses
    assert weighted.losses == pytest.approx(plain.losses, abs=0.1)


@pytest.mark.parametrize("weights", ["none", "balanced"])
def test_the_gradient_of_micro_batches_is_the_big_batchs_whatever_classes_they_hold(weights):
    digits = load_dataset("digits")
    criterion = build_criterion(ClassWeights(weights), digits, torch.device("cpu"))
    inputs, targets = digits.train.take(digits.train.labels.argsort()[:24])  # sorted: one class after the other
    gradients = []
    for count in (1, 4):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
        batches = zip(inputs.chunk(count), targets.chunk(count), strict=True)
        build_gradients(model, build_loss(model, criterion), None, batches, count)()
        gradients.append(model[1].weight.grad)
    assert torch.allclose(*gradients, atol=1e-7)
