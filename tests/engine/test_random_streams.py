"""Dropout on two ranks: each draws its own zeros, and goes on with them where a checkpoint left it."""

import json

import pytest
from engine_runs import ROOT, run_command, write_spec

JOB = {"micro_batch_size": 8, "num_devices": 2, "num_steps": 20, "checkpoint_every_steps": 10, "phase_steps": 0}
# A model that writes down which of 16 ones its dropout let through, whenever it trains.
MODEL = """
import os, torch, workers.engine.models as models

class Noting(torch.nn.Sequential):
    def forward(self, inputs):
        if self.training and inputs.device.type == "cpu":  # and is not counted for its FLOPs
            kept = torch.nn.functional.dropout(torch.ones(16), 0.5).ne(0).int().tolist()
            with open(f"{os.environ['NOTES']}-{os.environ['RANK']}", "a") as notes:
                print(kept, file=notes)
        return super().forward(inputs)

models.build_model = lambda *_: Noting(torch.nn.Flatten(), torch.nn.Linear(64, 10), torch.nn.Dropout(0.5))
"""


def masks(folder, name, *options, **fields):
    """Rank by rank what each step's dropout let through, and the run."""
    (folder / "sitecustomize.py").write_text(MODEL)
    environment = {"PYTHONPATH": f"{folder}:{ROOT}", "NOTES": str(folder / name)}
    files = ("--artifacts", str(folder / f"{name}-files"))
    ran = run_command(write_spec(folder, **JOB | fields), *files, *options, environment=environment)
    assert ran.exit_code == 0, ran.stderr
    noted = [(folder / f"{name}-{rank}").read_text().splitlines() for rank in range(2)]
    return [[json.loads(line) for line in lines] for lines in noted], ran


@pytest.mark.parametrize("parallelism", ["ddp", "fsdp2"])
def test_ranks_drop_differently_and_a_resumed_run_goes_on_with_each_ones_own_stream(tmp_path, parallelism):
    whole, unbroken = masks(tmp_path, "whole", parallelism=parallelism)
    assert [len(noted) for noted in whole] == [20, 20]
    assert all(one != other for one, other in zip(*whole, strict=True))
    checkpoint = tmp_path / "whole-files" / "checkpoints" / "step-000000010.pt"
    resumed, going_on = masks(tmp_path, "resumed", "--resume", str(checkpoint), parallelism=parallelism)
    assert resumed == [noted[10:] for noted in whole]
    assert going_on.losses == pytest.approx(unbroken.losses[10:], abs=1e-6)
