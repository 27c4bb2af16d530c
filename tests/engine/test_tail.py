"""The incomplete global batch at an epoch's end, where it is not dropped: every sample counts the same."""

import time
from itertools import islice

import pytest
import torch
from engine_runs import Recording, train
from torch import nn
from two_ranks import train_on_two_ranks

from jobs.contract.catalog import Target
from jobs.contract.choices import ClassWeights
from jobs.contract.errors import RefusedSpec
from jobs.contract.spec import TrainSpec
from workers.engine.class_weights import build_criterion
from workers.engine.data import load_dataset
from workers.engine.loop import Loop
from workers.engine.losses import loss_for
from workers.engine.order import BatchOrder
from workers.engine.parallel import Exchange, Rank
from workers.engine.report import Report
from workers.engine.step import build_gradients, build_loss

# Digits has 1,437 samples: 14 batches of 100, and 37 are left.
WHOLE = {"micro_batch_size": 100, "drop_last": False, "num_steps": 18, "phase_steps": 0}
NUM_SEEN = 17 * 100 + 37


def orders(num_samples, micro_batch_size, grad_accum_steps, num_ranks):
    sizes = (micro_batch_size, grad_accum_steps, num_ranks)
    return [BatchOrder(num_samples, 5, *sizes, rank, drop_last=False) for rank in range(num_ranks)]


SPLITS = [(16, 1, 1), (8, 2, 1), (8, 1, 2), (2, 4, 2), (1, 2, 8), (4, 1, 4), (5, 2, 3)]


@pytest.mark.parametrize("num_samples", [103, 97, 96])
@pytest.mark.parametrize("split", SPLITS, ids=str)
def test_an_epoch_holds_every_sample_once_by_its_weight(num_samples, split):
    ranks = orders(num_samples, *split)
    weight_of_sample = torch.zeros(num_samples)
    epochs = [order.epoch(1) for order in ranks]
    for epoch in epochs:
        weight_of_sample[epoch.whole.flatten()] += 1
    for order, epoch in zip(ranks, epochs, strict=True):
        if not epoch.tail:
            continue
        *_whole, weights = islice(order.weights_from(0), order.steps_per_epoch)
        for weight, indices in zip(weights, epoch.tail, strict=True):
            each = weight * order.tail_size / len(ranks) / len(indices)  # 1 where the mean weighs all samples alike
            weight_of_sample[indices] += each
    assert torch.allclose(weight_of_sample, torch.ones(num_samples))


@pytest.mark.parametrize("split", SPLITS, ids=str)
def test_all_ranks_take_as_many_micro_batches_and_none_is_too_large(split):
    tails = [order.epoch(0).tail for order in orders(103, *split)]
    assert len({len(tail) for tail in tails}) == 1
    assert all(1 <= len(indices) <= split[0] for tail in tails for indices in tail)
    assert min(len(indices) for tail in tails for indices in tail) == orders(103, *split)[0].smallest_micro_batch


def test_a_tail_holds_the_same_samples_however_it_is_split():
    def tail(*split):
        return {index for order in orders(103, *split) for part in order.epoch(2).tail for index in part.tolist()}

    assert len(tail(16, 1, 1)) == 103 % 16
    assert all(tail(*split) == tail(16, 1, 1) for split in SPLITS[:5])


def test_samples_and_steps_are_counted_with_the_tail():
    (order,) = orders(103, 4, 2, 1)
    assert (order.steps_per_epoch, order.tail_size) == (13, 7)
    assert [order.count_samples(steps) for steps in (0, 1, 12, 13, 14, 26)] == [0, 8, 96, 103, 111, 206]
    dropping = BatchOrder(103, 5, 4, 2, 1, 0)
    assert (dropping.steps_per_epoch, dropping.tail_size, dropping.epoch(0).tail) == (12, 0, [])
    assert [dropping.count_samples(steps) for steps in (12, 13)] == [96, 104]


@pytest.mark.parametrize("weights", ["none", "balanced"])
def test_the_gradient_of_unequal_micro_batches_is_the_big_batchs(weights):
    digits = load_dataset("digits")
    criterion = build_criterion(ClassWeights(weights), digits, torch.device("cpu"))
    inputs, targets = digits.train.take(digits.train.labels.argsort()[:23])  # sorted: one class after the other
    gradients, losses = [], []
    for sizes in ([23], [10, 10, 3]):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
        batches = zip(inputs.split(sizes), targets.split(sizes), strict=True)
        shares = iter([[size / 23 for size in sizes]])
        losses.append(build_gradients(model, build_loss(model, criterion), None, batches, 3, shares)())
        gradients.append(model[1].weight.grad)
    assert torch.allclose(*gradients, atol=1e-7)
    assert torch.allclose(*losses, atol=1e-6)


def test_equal_weights_on_unequal_micro_batches_would_be_seen_by_these_tests():
    digits = load_dataset("digits")
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    inputs, targets = digits.train.take(torch.arange(23))
    gradients = []
    for sizes, shares in (([23], [1.0]), ([20, 3], [0.5, 0.5])):
        model.zero_grad()
        batches = zip(inputs.split(sizes), targets.split(sizes), strict=True)
        loss = build_loss(model, loss_for(Target.CLASS))
        build_gradients(model, loss, None, batches, 2, iter([shares]))()
        gradients.append(model[1].weight.grad)
    assert not torch.allclose(*gradients, atol=1e-3)


@pytest.fixture(scope="module")
def in_one_go():
    return train(**WHOLE)


def assert_same(ran, plain):
    assert ran.losses == pytest.approx(plain.losses, abs=1e-5)
    assert ran.summary.final_eval_loss == pytest.approx(plain.summary.final_eval_loss, abs=1e-5)
    assert ran.summary.num_samples == NUM_SEEN


@pytest.mark.parametrize(
    "fields",
    [
        {"micro_batch_size": 25, "grad_accum_steps": 4},
        {"micro_batch_size": 10, "grad_accum_steps": 10, "data_loading": "dataloader", "num_workers": 1},
        {"data_loading": "dataloader"},
    ],
    ids=str,
)
def test_accumulated_steps_train_as_whole_ones_tail_included(in_one_go, fields):
    assert_same(train(**WHOLE | fields), in_one_go)


UNEVEN = WHOLE | {"micro_batch_size": 25, "grad_accum_steps": 2}  # 19 and 18 samples are left
EMPTY = WHOLE | {"micro_batch_size": 2, "grad_accum_steps": 25}  # one rank's last micro-batch has none
ONE_LEFT = {"micro_batch_size": 718, "drop_last": False, "num_steps": 3}  # 1 of 1,437 samples for two ranks


@pytest.fixture(scope="module")
def on_two_ranks(tmp_path_factory):
    ddp, fsdp = {"parallelism": "ddp"}, {"parallelism": "fsdp2"}
    return train_on_two_ranks(
        tmp_path_factory.mktemp("ranks"),
        uneven_ddp=UNEVEN | ddp,
        uneven_fsdp2=UNEVEN | fsdp,
        empty_ddp=EMPTY | ddp,
        empty_fsdp2=EMPTY | fsdp,
        one_left=ONE_LEFT | ddp,
    )


@pytest.mark.parametrize("parallelism", ["ddp", "fsdp2"])
@pytest.mark.parametrize("split", ["uneven", "empty"])
def test_two_ranks_train_as_one_process_tail_included(on_two_ranks, in_one_go, parallelism, split):
    assert_same(on_two_ranks[f"{split}_{parallelism}"], in_one_go)


def test_more_ranks_than_samples_are_left_train_as_one_process(on_two_ranks):
    whole, ran = train(**ONE_LEFT | {"micro_batch_size": 1436}), on_two_ranks["one_left"]
    assert ran.losses == pytest.approx(whole.losses, abs=1e-5)
    assert ran.summary.num_samples == whole.summary.num_samples == 1437 + 1436


def test_epochs_become_one_step_more_each(in_one_go):
    epochs = WHOLE | {"num_steps": None, "num_epochs": 2}
    kept, dropped = train(**epochs), train(**epochs | {"drop_last": True})
    assert (kept.summary.num_steps, kept.summary.num_samples) == (30, 2 * 1437)
    assert (dropped.summary.num_steps, dropped.summary.num_samples) == (28, 2800)
    assert kept.losses[:14] == pytest.approx(dropped.losses[:14], abs=1e-6)
    assert kept.losses[14:18] == pytest.approx(in_one_go.losses[14:], abs=1e-6)


def test_a_batch_norm_is_refused_a_micro_batch_of_one(monkeypatch):
    def build(*_arguments, **_options):
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 10), nn.BatchNorm1d(10))

    monkeypatch.setattr("workers.engine.assembly.build_model", build)
    with pytest.raises(RefusedSpec, match="drop_last: The epoch's last micro-batch would be one sample"):
        train(micro_batch_size=4, drop_last=False)
    assert train(micro_batch_size=1000, drop_last=False, num_steps=3).summary.num_samples == 2437


def test_throughput_counts_the_samples_that_were_there(monkeypatch):
    now_s = 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: now_s)
    order = BatchOrder(1437, 0, 1000, 1, 1, 0, drop_last=False)  # a tail in every second step
    num_taken = 0

    def take_step():
        nonlocal now_s, num_taken
        num_taken += 1
        now_s += (order.count_samples(num_taken) - order.count_samples(num_taken - 1)) / 1000
        return torch.zeros(())

    spec = TrainSpec(num_steps=41, micro_batch_size=1000, drop_last=False)
    device, report = torch.device("cpu"), Report(Recording())
    loop = Loop(take_step, spec, Exchange(Rank(), device), report, [device], order)
    loop.run_first_step()
    loop.run_warmup()
    loop.run_steady()
    assert report.summary.samples_per_s == pytest.approx(1000)
    assert report.summary.num_samples == 20 * 1437 + 1000


def test_the_tail_compiles_the_model_again_as_the_rules_warning_says():
    torch._dynamo.reset()
    ran = train(**WHOLE | {"compile_mode": "default", "num_steps": 4, "micro_batch_size": 700})
    assert ran.summary.num_recompiles >= 1
    assert ran.losses == pytest.approx(train(**WHOLE | {"num_steps": 4, "micro_batch_size": 700}).losses, abs=1e-4)
