"""Each fast path is held against the plain one: the same losses, exactly or within a stated tolerance."""

from itertools import islice

import pytest
import torch
from engine_runs import DIGITS, train

from jobs.contract.spec import Precision, TrainSpec
from workers.engine.batches import open_batches
from workers.engine.data import load_dataset
from workers.engine.order import BatchOrder
from workers.engine.precision import apply_precision


def test_accumulated_micro_batches_train_as_the_big_batch(baseline):
    accumulated = train(micro_batch_size=4, grad_accum_steps=4)
    assert accumulated.losses == pytest.approx(baseline.losses, abs=1e-5)
    assert accumulated.summary.final_eval_loss == pytest.approx(baseline.summary.final_eval_loss, abs=1e-5)


@pytest.mark.parametrize(
    "loader",
    [
        {},
        {"num_workers": 1},
        {"num_workers": 2, "prefetch_factor": 4, "persistent_workers": True},
    ],
    ids=str,
)
def test_the_dataloader_gives_exactly_the_same_batches_in_the_same_order(loader):
    digits = load_dataset("digits").train
    on_device = batches(digits, 30, data_loading="on-device")  # over two ends of an epoch
    loaded = batches(digits, 30, data_loading="dataloader", **loader)
    for one, two in zip(on_device, loaded, strict=True):
        assert torch.equal(one[0], two[0])
        assert torch.equal(one[1], two[1])


def batches(split, count, **fields):
    spec = TrainSpec(**DIGITS | {"micro_batch_size": 100} | fields)
    order = BatchOrder.of(spec, len(split), rank=0)
    return list(islice(open_batches(spec, split, order, torch.device("cpu")), count))


def test_the_dataloader_gives_a_language_model_exactly_the_same_batches():
    text = load_dataset("stdlib-text").train
    on_device, loaded = (batches(text, 4, data_loading=name) for name in ("on-device", "dataloader"))
    for one, two in zip(on_device, loaded, strict=True):
        assert torch.equal(one[0], two[0])
        assert torch.equal(one[1], two[1])


def test_a_run_with_the_dataloader_trains_as_one_on_device(baseline):
    loaded = train(data_loading="dataloader", num_workers=1)
    assert loaded.losses == pytest.approx(baseline.losses, abs=1e-6)


def test_bf16_mixed_computes_in_bfloat16_and_stays_near(baseline):
    mixed = train(precision="bf16-mixed")
    assert baseline.summary.observed_dtype == "float32"
    assert mixed.summary.observed_dtype == "bfloat16"
    assert mixed.losses == pytest.approx(baseline.losses, abs=0.02)
    assert mixed.losses != baseline.losses


def test_the_compiled_model_trains_as_the_eager_one(baseline):
    compiled = train(compile_mode="default")
    assert compiled.losses == pytest.approx(baseline.losses, abs=1e-4)
    assert compiled.summary.final_eval_loss == pytest.approx(baseline.summary.final_eval_loss, abs=1e-4)
    assert compiled.summary.first_step_s > baseline.summary.first_step_s


def test_fp32_is_ieee_single_precision():
    torch.set_float32_matmul_precision("high")
    assert apply_precision(Precision.FP32, torch.device("cpu")) == "ieee"
    assert torch.get_float32_matmul_precision() == "highest"


def global_batches(micro_batch_size, grad_accum_steps, num_ranks):
    orders = [BatchOrder(103, 5, micro_batch_size, grad_accum_steps, num_ranks, rank) for rank in range(num_ranks)]
    epochs = [order.epoch(1).whole.view(order.steps_per_epoch, -1) for order in orders]
    return [set(batch) for batch in torch.cat(epochs, dim=1).tolist()]


@pytest.mark.parametrize("split", [(16, 1, 1), (8, 2, 1), (8, 1, 2), (2, 4, 2), (4, 1, 4)], ids=str)
def test_a_global_batch_holds_the_same_samples_however_it_is_split(split):
    batches = global_batches(*split)
    assert batches == global_batches(16, 1, 1)
    assert [len(batch) for batch in batches] == [16] * 6  # the incomplete seventh is dropped


def test_an_epoch_holds_each_sample_at_most_once_and_the_next_is_in_another_order():
    order = BatchOrder(103, 5, 16, 1, 1, 0)
    assert len(order.epoch(0).whole.unique()) == 96
    assert not torch.equal(order.epoch(0).whole, order.epoch(1).whole)


def test_a_split_takes_the_samples_it_is_asked_for():
    split = load_dataset("digits").train
    images, labels = split.take(torch.tensor([5, 2]))
    assert torch.equal(images[1], split.samples[2])
    assert torch.equal(labels, split.labels[[5, 2]])
