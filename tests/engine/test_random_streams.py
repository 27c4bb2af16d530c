"""Dropout on two ranks: each draws its own zeros, and goes on with them where a checkpoint left it."""

import json

import pytest
from two_ranks import train_on_two_ranks

JOB = {"micro_batch_size": 8, "num_steps": 20, "checkpoint_every_steps": 10, "phase_steps": 0}
# A model that writes down which of 16 ones its dropout let through, whenever it trains.
MODEL = """
import os, torch, workers.engine.models as models

class Noting(torch.nn.Sequential):
    def forward(self, inputs):
        if self.training and inputs.device.type == "cpu":  # and is not counted for its FLOPs
            kept = torch.nn.functional.dropout(torch.ones(16), 0.5).ne(0).int().tolist()
            with open("{notes}-" + os.environ["RANK"], "a") as notes:
                print(kept, file=notes)
        return super().forward(inputs)

models.build_model = lambda *_: Noting(torch.nn.Flatten(), torch.nn.Linear(64, 10), torch.nn.Dropout(0.5))
"""


@pytest.fixture(scope="module")
def on_two_ranks(tmp_path_factory):
    """Runs in a go and runs that go on, and rank by rank what each step's dropout let through, in their order."""
    folder, cases = tmp_path_factory.mktemp("ranks"), {}
    (folder / "sitecustomize.py").write_text(MODEL.format(notes=str(folder / "notes")))
    for name in ("ddp", "fsdp2"):
        whole = folder / name
        checkpoint = whole / "checkpoints" / "step-000000010.pt"
        cases[name] = JOB | {"parallelism": name, "files": {"artifacts": whole}}
        cases[f"{name} resumed"] = cases[name] | {
            "files": {"artifacts": folder / f"{name}-resumed", "resume": checkpoint}
        }
    ran = train_on_two_ranks(folder, **cases)
    noted = [(folder / f"notes-{rank}").read_text().splitlines() for rank in range(2)]
    return ran, [[json.loads(line) for line in lines] for lines in noted]


@pytest.mark.parametrize(("parallelism", "first"), [("ddp", 0), ("fsdp2", 30)])
def test_ranks_drop_differently_and_a_resumed_run_goes_on_with_each_ones_own_stream(on_two_ranks, parallelism, first):
    ran, noted = on_two_ranks
    assert [len(lines) for lines in noted] == [60, 60]  # of each parallelism 20 steps in a go, and 10 that go on
    whole, resumed = ([lines[first:][part] for lines in noted] for part in (slice(20), slice(20, 30)))
    assert all(one != other for one, other in zip(*whole, strict=True))
    assert resumed == [lines[10:] for lines in whole]
    unbroken, going_on = ran[parallelism], ran[f"{parallelism} resumed"]
    assert len(unbroken.losses) == 20
    assert going_on.losses == pytest.approx(unbroken.losses[10:], abs=1e-6)
