"""`task: inference`: forward passes, timed as steps are."""

import pytest
import torch
from engine_runs import train
from two_ranks import train_on_two_ranks

from workers.engine import assembly


@pytest.fixture(scope="module")
def inferred():
    return train(task="inference", num_steps=30)


def test_forward_passes_are_timed_as_steps_are(inferred):
    summary = inferred.summary
    assert (summary.num_steps, summary.num_samples) == (30, 480)
    assert summary.samples_per_s == pytest.approx(16e3 / summary.steady_step_time_ms)
    assert summary.step_time_p50_ms > 0


def test_the_loss_is_the_untrained_models_evaluation_loss(inferred):
    assert inferred.points("train_loss") == {}
    assert inferred.summary.final_train_loss is None
    assert inferred.summary.final_eval_loss == pytest.approx(2.3, abs=0.2)  # ten classes, ln 10
    assert 0 <= inferred.summary.eval_accuracy <= 1


def test_a_forward_pass_has_fewer_parts_and_fewer_operations(inferred, baseline):
    assert inferred.summary.phase_forward_ms > 0
    assert inferred.summary.phase_backward_ms is None
    assert inferred.summary.phase_optimizer_ms is None
    assert inferred.summary.flops_per_step < baseline.summary.flops_per_step


def test_no_weight_moves_and_nothing_is_kept_for_a_backward_pass(monkeypatch):
    seen = {}
    build = assembly.build_model

    def watched(*arguments):
        model = build(*arguments)
        seen["before"] = [parameter.clone() for parameter in model.parameters()]
        model.register_forward_hook(
            lambda module, _inputs, output: seen.setdefault("modes", set()).add(
                (module.training, output.requires_grad, torch.is_inference_mode_enabled())
            )
        )
        seen["model"] = model
        return model

    monkeypatch.setattr(assembly, "build_model", watched)
    train(task="inference", num_steps=5)
    assert (False, False, True) in seen["modes"]
    assert not any(requires_grad for _training, requires_grad, _mode in seen["modes"])
    after = list(seen["model"].parameters())
    assert all(torch.equal(one, two) for one, two in zip(seen["before"], after, strict=True))
    assert all(parameter.grad is None for parameter in after)


@pytest.mark.parametrize(
    "fields", [{"precision": "bf16-mixed"}, {"data_loading": "dataloader", "num_workers": 1}], ids=str
)
def test_inference_takes_the_options_of_hardware_and_data(fields):
    assert train(task="inference", num_steps=4, **fields).summary.samples_per_s > 0


def test_made_up_data_have_no_evaluation_loss_in_inference_either():
    ran = train(task="inference", dataset="synthetic-images", image_size=8, num_steps=4)
    assert ran.summary.final_eval_loss is None


def test_two_ranks_share_the_samples_out(tmp_path, inferred):
    fields = {"task": "inference", "micro_batch_size": 8, "num_steps": 6}
    ran = train_on_two_ranks(tmp_path, inference=fields | {"parallelism": "ddp"})["inference"]
    assert ran.summary.num_samples == 96
    assert ran.summary.final_eval_loss == pytest.approx(inferred.summary.final_eval_loss, abs=1e-5)
    assert ran.summary.phase_communication_exposed_ms is None
