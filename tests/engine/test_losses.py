import pytest
import torch
from engine_runs import train
from torch.nn import functional

from jobs.contract.catalog import Target
from workers.engine.losses import loss_for


def test_a_value_is_compared_with_its_own_output_only():
    outputs, targets = torch.tensor([[1.0], [2.0], [4.0]]), torch.tensor([1.0, 1.0, 2.0])
    assert loss_for(Target.VALUE)(outputs, targets) == pytest.approx((0 + 1 + 4) / 3)


def test_classes_and_tokens_have_cross_entropy():
    outputs, targets = torch.randn(2, 5, 7), torch.randint(7, (2, 5))
    wanted = functional.cross_entropy(outputs.permute(0, 2, 1), targets)
    assert loss_for(Target.NEXT_TOKEN)(outputs, targets) == pytest.approx(wanted)
    assert loss_for(Target.CLASS)(outputs[:, 0], targets[:, 0]) == pytest.approx(
        functional.cross_entropy(outputs[:, 0], targets[:, 0])
    )


def test_regression_learns_and_has_no_accuracy():
    ran = train(dataset="diabetes", num_steps=150, learning_rate=3e-3)
    assert ran.summary.final_eval_loss < 0.75  # predicting the mean gives about 1
    assert ran.summary.eval_accuracy is None


@pytest.mark.parametrize("dataset", ["breast-cancer", "wine"])
def test_a_table_of_classes_is_learned(dataset):
    ran = train(dataset=dataset, num_steps=60, learning_rate=3e-3)
    assert ran.summary.eval_accuracy > 0.9
