"""A tensor on another device is named with the one that it meets; nothing is moved silently."""

import pytest
import torch
from engine_runs import ROOT, run_command, write_spec
from torch import nn

from jobs.contract.states import Outcome
from workers.engine.class_weights import WeightedCrossEntropy
from workers.engine.failure import failure_from
from workers.engine.report import Report

CPU, META = torch.device("cpu"), torch.device("meta")


class Scaled(nn.Module):
    """Holds a tensor that is no buffer, so that `.to` leaves it where it was made."""

    def __init__(self, device):
        super().__init__()
        self.scale = torch.ones(3, device=device)

    def forward(self, inputs):
        return inputs * self.scale


class Unnamed(nn.Module):
    """Makes a tensor in the middle of an expression."""

    def forward(self, inputs):
        return inputs + torch.ones(3, device="meta")


def failure_of(compute):
    with pytest.raises(RuntimeError) as caught:
        compute()
    return failure_from(caught.value, Report(None))


@pytest.mark.parametrize(
    ("compute", "words"),
    [
        (
            lambda: nn.Sequential(nn.Flatten(), nn.Linear(3, 3))(torch.ones(2, 3, device=META)),
            "In Linear “1” “input” is on meta and its “weight” is on cpu.",
        ),
        (
            lambda: nn.Sequential(nn.Sequential(Scaled(META)))(torch.ones(2, 3)),
            "In Scaled “0.0” “inputs” is on cpu and its “scale” is on meta.",
        ),
        (
            lambda: Unnamed()(torch.ones(2, 3)),
            "In Unnamed “inputs” is on cpu and a tensor without a name is on meta.",
        ),
        (
            lambda: WeightedCrossEntropy(torch.ones(3, device=META))(torch.ones(2, 3), torch.ones(2).long()),
            "In cross_entropy() “input” is on cpu and “weight” is on meta.",
        ),
    ],
    ids=["weights", "a tensor that is no buffer", "a tensor without a name", "the loss's weights"],
)
def test_both_tensors_and_their_devices_are_named(compute, words):
    failure = failure_of(compute)
    assert (failure.exit_code, failure.error.type) == (13, "DeviceMismatch")
    assert failure.error.message.startswith(words)


@pytest.mark.parametrize(
    "message",
    [
        "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! (when "
        "checking argument for argument mat1 in method wrapper_CUDA_addmm)",
        "Expected all tensors to be on the same device, but got mat1 is on cpu, different from other tensors on cuda:0 "
        "(when checking argument in method wrapper_CUDA_addmm)",
    ],
)
def test_the_words_of_gpus_are_understood(message):
    try:
        raise RuntimeError(message)
    except RuntimeError as error:
        failure = failure_from(error, Report(None))
    assert failure.error.type == "DeviceMismatch"
    assert "is on cpu" in failure.error.message
    assert "is on cuda:0" in failure.error.message


def test_other_errors_are_none_of_these():
    failure = failure_of(lambda: nn.Linear(3, 3)(torch.ones(2, 4)))
    assert (failure.exit_code, failure.error.type) == (1, "RuntimeError")


@pytest.mark.parametrize("fields", [{}, {"parallelism": "ddp", "num_devices": 2}], ids=["one process", "two ranks"])
def test_a_user_reads_them_at_the_end_of_the_run(tmp_path, fields):
    (tmp_path / "sitecustomize.py").write_text(
        "import torch, workers.engine.models as models\n"
        "class Shifted(torch.nn.Linear):\n"
        "    shift = torch.ones(10, device='meta')\n"
        "    def forward(self, inputs):\n"
        "        outputs, shift = super().forward(inputs), self.shift\n"
        "        return outputs + shift\n"
        "models.build_model = lambda *_: torch.nn.Sequential(torch.nn.Flatten(), Shifted(64, 10))\n"
    )
    ran = run_command(write_spec(tmp_path, **fields), environment={"PYTHONPATH": f"{tmp_path}:{ROOT}"})
    assert (ran.exit_code, ran.finished.outcome) == (13, Outcome.FAILED)
    error = ran.finished.error
    assert (error.type, error.phase) == ("DeviceMismatch", "building")
    assert error.message.startswith("In Shifted “1” “outputs” is on cpu and “shift” is on meta.")
    assert ran.stderr.splitlines()[-1] == error.message
