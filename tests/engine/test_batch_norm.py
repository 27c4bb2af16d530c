"""Batch norms keep statistics beside weights: the same ones however a step is computed and whoever evaluates."""

import math

import pytest
import torch
from engine_runs import train
from torch import nn
from two_ranks import train_on_two_ranks

from workers.engine.blocks import checkpoint_activations

JOB = {"model": "convnet", "num_steps": 6, "micro_batch_size": 8, "phase_steps": 0}
MODEL = """
import torch
from torch import nn

class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        stages = [(1, 4), (4, 8)]
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU()) for i, o in stages
        )
        self.head = nn.Sequential(nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(8 * 64, 10))

    def forward(self, images):
        for block in self.blocks:
            images = block(images)
        return self.head(images)
"""
PATCH = """
import dataclasses
import workers.engine.data as data
import workers.engine.models as models

models.build_model = lambda *_: Norms()
load, counts = data.load_dataset, iter([100, 100, 1])  # of one run after the other

def load_less(*about):
    dataset = load(*about)
    split, count = dataset.evaluation, next(counts)
    few = dataclasses.replace(split, samples=split.samples[:count], labels=split.labels[:count])
    return dataclasses.replace(dataset, evaluation=few)

data.load_dataset = load_less
"""
namespace = {}
exec(MODEL, namespace)  # noqa: S102 - the same model here and in the ranks' processes
Norms = namespace["Norms"]


@pytest.fixture(scope="module")
def on_two_ranks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    (folder / "sitecustomize.py").write_text(MODEL + PATCH)
    sharded = JOB | {"parallelism": "fsdp2"}
    cases = {"ddp": JOB | {"parallelism": "ddp"}, "fsdp2": sharded, "bf16": sharded | {"precision": "bf16-mixed"}}
    return train_on_two_ranks(folder, **cases)


def test_ranks_evaluate_with_one_set_of_statistics_sharded_or_not(on_two_ranks):
    ddp, fsdp2 = on_two_ranks["ddp"], on_two_ranks["fsdp2"]
    assert fsdp2.losses == pytest.approx(ddp.losses, abs=1e-5)
    assert fsdp2.summary.final_eval_loss == pytest.approx(ddp.summary.final_eval_loss, abs=1e-5)


def test_sharded_norms_stay_in_fp32_and_a_rank_without_a_sample_to_evaluate_counts_nothing(on_two_ranks):
    ran = on_two_ranks["bf16"]
    assert ran.summary.observed_dtype == "bfloat16"
    assert math.isfinite(ran.summary.final_eval_loss)
    assert ran.summary.eval_accuracy in (0.0, 1.0)
    assert ran.losses[0] == pytest.approx(math.log(10), abs=0.5)
    assert ran.losses[-1] < ran.losses[0]


@pytest.mark.parametrize("momentum", [0.1, None])
def test_computing_a_block_again_counts_its_samples_once(momentum):
    torch.manual_seed(0)
    plain = Norms()
    for module in plain.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = momentum
    again = Norms()
    again.load_state_dict(plain.state_dict())
    for one, other in zip(plain.blocks, again.blocks, strict=True):
        other[1].momentum = one[1].momentum
    again.head[0].momentum = momentum
    checkpoint_activations(again)
    for _ in range(3):
        images = torch.randn(4, 1, 8, 8)
        for model in (plain, again):
            model(images).square().mean().backward()
    for name, tensor in plain.state_dict().items():
        torch.testing.assert_close(again.state_dict()[name], tensor, msg=name)
    for name, parameter in plain.named_parameters():
        torch.testing.assert_close(again.get_parameter(name).grad, parameter.grad, msg=name)
    assert [block[1].momentum for block in again.blocks] == [momentum, momentum]


@pytest.mark.parametrize("compile_mode", ["off", pytest.param("default", marks=pytest.mark.slow)])
def test_checkpointed_activations_change_no_evaluation(monkeypatch, compile_mode):
    def build(*_about):
        return Norms()

    monkeypatch.setattr("workers.engine.assembly.build_model", build)
    monkeypatch.setattr("workers.engine.flops.build_model", build)
    monkeypatch.setattr("jobs.contract.catalog.ModelInfo.lacks", lambda *_: False)
    plain, again = (train(**JOB, compile_mode=compile_mode, activation_checkpointing=on) for on in (False, True))
    assert again.losses == pytest.approx(plain.losses, abs=1e-4)
    assert again.summary.final_eval_loss == pytest.approx(plain.summary.final_eval_loss, abs=1e-4)
