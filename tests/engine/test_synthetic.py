import pytest
import torch
from engine_runs import train

from jobs.contract.events import Phase, Warned
from workers.engine.data import load_dataset
from workers.engine.data.dataset import Sizes

SMALL = Sizes(image_size=16, sequence_length=12)


@pytest.mark.parametrize("name", ["synthetic-images", "synthetic-tokens", "synthetic-sequences"])
def test_made_up_data_are_the_same_every_time_and_of_the_size_asked_for(name):
    one, two = load_dataset(name, SMALL), load_dataset(name, SMALL)
    assert torch.equal(one.train.samples, two.train.samples)
    assert one.sample_shape in ((3, 16, 16), (12,))
    assert one.is_synthetic


def test_made_up_samples_come_round():
    split = load_dataset("synthetic-images", SMALL).train
    assert len(split) == 65_536
    inputs, labels = split.take(torch.tensor([3, 3 + 64, 4]))
    assert torch.equal(inputs[0], inputs[1])
    assert labels[0] == labels[1]
    assert not torch.equal(inputs[0], inputs[2])


@pytest.mark.parametrize("data_loading", ["on-device", "dataloader"])
def test_made_up_data_measure_speed_and_show_no_loss(data_loading):
    ran = train(dataset="synthetic-images", image_size=16, num_steps=12, data_loading=data_loading)
    assert ran.summary.samples_per_s > 0
    assert ran.points("step_time_ms")
    assert ran.points("train_loss") == {}
    losses = (ran.summary.final_train_loss, ran.summary.final_eval_loss, ran.summary.eval_accuracy)
    assert losses == (None, None, None)
    assert "evaluating" not in [event.name for event in ran.events if isinstance(event, Phase)]
    (warned,) = [event.finding for event in ran.events if isinstance(event, Warned)]
    assert "made up" in warned.sentence
