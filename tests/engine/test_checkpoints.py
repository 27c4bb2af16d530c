import resource
import sys
from itertools import islice

import numpy as np
import pytest
import torch
from engine_runs import Recording, Run, run_command, train, write_spec
from two_ranks import train_on_two_ranks

from jobs.contract.errors import CheckpointMismatch, CheckpointUnreadable, RefusedSpec
from jobs.contract.events import Artifact
from jobs.contract.spec import TrainSpec
from workers.engine import assembly
from workers.engine.checkpoint import read_checkpoint, warn_of_what_begins_anew
from workers.engine.files import RunFiles, list_checkpoints
from workers.engine.order import BatchOrder
from workers.engine.report import Report
from workers.engine.training_state import collect_random_state, restore_random_state

# 89 steps of 16 make an epoch: the run goes on in the middle of the second one.
JOB = {"model": "mlp", "dataset": "digits", "device": "cpu", "micro_batch_size": 16, "num_steps": 120}
EVERY = 50


def train_with(files: RunFiles, **fields) -> Run:
    return train(files, **JOB | fields)


def checkpoint(folder, step):
    return folder / "checkpoints" / f"step-{step:09d}.pt"


def weights(path):
    return torch.load(path, weights_only=True)["state"]["model"]


def assert_equal_to_unbroken(folder, resume_at=100, **fields):
    """One run in a go, one that goes on from its checkpoint: the same losses and the same weights."""
    whole = train_with(RunFiles(artifacts=folder / "whole"), checkpoint_every_steps=EVERY, **fields)
    files = RunFiles(artifacts=folder / "resumed", resume=checkpoint(folder / "whole", resume_at))
    resumed = train_with(files, checkpoint_every_steps=EVERY, **fields)
    expected = {step: loss for step, loss in whole.points("train_loss").items() if step > resume_at}
    assert list(resumed.points("train_loss")) == list(expected)
    assert list(resumed.losses) == pytest.approx(list(expected.values()), abs=1e-6)
    assert resumed.summary.final_train_loss == pytest.approx(whole.summary.final_train_loss, abs=1e-6)
    assert resumed.summary.final_eval_loss == pytest.approx(whole.summary.final_eval_loss, abs=1e-6)
    assert resumed.summary.num_samples == whole.summary.num_samples
    ends = [weights(checkpoint(folder / name, JOB["num_steps"])) for name in ("whole", "resumed")]
    for name, tensor in ends[0].items():
        torch.testing.assert_close(ends[1][name], tensor, rtol=0, atol=1e-6)
    return whole


def test_a_resumed_run_equals_an_unbroken_one_step_for_step(tmp_path):
    whole = assert_equal_to_unbroken(tmp_path)
    assert whole.summary.checkpoint_s > 0
    assert whole.losses == pytest.approx(train(**JOB).losses, abs=1e-6)  # saving changed nothing


@pytest.mark.parametrize(
    "fields",
    [
        {"data_loading": "dataloader"},
        {"grad_accum_steps": 2, "micro_batch_size": 8},
        {"optimizer": "sgd", "momentum": 0.9, "learning_rate": 0.05, "lr_schedule": "cosine", "warmup_steps": 20},
        {"optimizer_impl": "fused"},
        {"drop_last": False},
        {"drop_last": False, "data_loading": "dataloader", "grad_accum_steps": 2, "micro_batch_size": 8},
    ],
    ids=["dataloader", "accumulation", "schedule and momentum", "fused", "tail", "tail of an accumulation"],
)
def test_it_does_so_with_each_part_that_has_a_state_or_a_place(tmp_path, fields):
    assert_equal_to_unbroken(tmp_path, **fields)


def test_dropout_goes_on_with_the_same_random_numbers(tmp_path, monkeypatch):
    def build(*_arguments, **_options):
        return torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(64, 32), torch.nn.Dropout(0.5), torch.nn.Linear(32, 10)
        )

    monkeypatch.setattr("workers.engine.assembly.build_model", build)
    assert_equal_to_unbroken(tmp_path)


@pytest.fixture(scope="module")
def on_two_ranks(tmp_path_factory):
    """One run in a go and one that goes on from its checkpoint, and the folder of their files."""
    folder, cases = tmp_path_factory.mktemp("ranks"), {}
    for name in ("ddp", "fsdp2"):
        fields = JOB | {"parallelism": name, "micro_batch_size": 8, "checkpoint_every_steps": EVERY}
        whole, resumed = folder / f"{name} whole", folder / f"{name} resumed"
        cases[whole.name] = fields | {"files": {"artifacts": whole}}
        cases[resumed.name] = fields | {"files": {"artifacts": resumed, "resume": checkpoint(whole, 100)}}
    return train_on_two_ranks(folder, **cases), folder


@pytest.mark.parametrize("parallelism", ["ddp", "fsdp2"])
def test_two_ranks_go_on_as_they_would_have(on_two_ranks, parallelism):
    ran, folder = on_two_ranks
    whole, resumed = ran[f"{parallelism} whole"], ran[f"{parallelism} resumed"]
    assert len(whole.losses) == JOB["num_steps"]
    assert resumed.losses == pytest.approx(whole.losses[100:], abs=1e-6)
    saved = torch.load(checkpoint(folder / f"{parallelism} whole", 100), weights_only=True)
    assert len(saved["state"]["random"]) == 2
    assert saved["state"]["is_sharded"] == (parallelism == "fsdp2")
    assert all(tensor.shape for tensor in saved["state"]["model"].values())


def test_the_last_two_are_kept_and_each_is_announced(tmp_path):
    ran = train_with(RunFiles(artifacts=tmp_path), checkpoint_every_steps=EVERY)
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == [
        "step-000000100.pt",
        "step-000000120.pt",
    ]
    announced = [event for event in ran.events if isinstance(event, Artifact)]
    assert [event.name for event in announced] == ["step-000000050.pt", "step-000000100.pt", "step-000000120.pt"]
    assert announced[-1].file == "checkpoints/step-000000120.pt"
    assert announced[-1].size_bytes == checkpoint(tmp_path, 120).stat().st_size


def micro_batches(order, num_done, num_epochs):
    epochs = islice(order.epochs_from(num_done), num_epochs)
    return [batch.tolist() for epoch in epochs for batch in [*epoch.whole, *epoch.tail]]


def test_a_batch_order_goes_on_where_it_was():
    order = BatchOrder(num_samples=50, seed=3, micro_batch_size=4, grad_accum_steps=2, num_ranks=1, rank=0)
    batches = micro_batches(order, 0, 3)
    for num_done in (0, 1, 5, 6, 7):  # six steps make an epoch
        later = micro_batches(order, num_done, 2)
        assert len(later) == 24 - 2 * (num_done % 6)
        assert later == batches[2 * num_done :][: len(later)]


def test_a_batch_order_with_a_tail_goes_on_where_it_was():
    order = BatchOrder(45, 3, micro_batch_size=4, grad_accum_steps=2, num_ranks=1, rank=0, drop_last=False)
    batches, weights = micro_batches(order, 0, 3), list(islice(order.weights_from(0), 18))
    for num_done in (0, 1, 5, 6, 7):  # six steps make an epoch, the last of them of 4 and 1 samples
        assert weights[num_done] == (pytest.approx([0.8, 0.2]) if num_done == 5 else [0.5, 0.5])
        assert list(islice(order.weights_from(num_done), 6)) == weights[num_done:][:6]
        later = micro_batches(order, num_done, 2)
        assert later == batches[2 * num_done :][: len(later)]


def test_random_streams_come_back():
    state = collect_random_state()
    first = (np.random.rand(), torch.rand(1).item())
    restore_random_state(state)
    assert (np.random.rand(), torch.rand(1).item()) == first


def test_a_missing_or_broken_checkpoint_is_a_sentence(tmp_path):
    with pytest.raises(CheckpointUnreadable, match=r"nowhere\.pt cannot be read: No such file"):
        train_with(RunFiles(resume=tmp_path / "nowhere.pt"))
    train_with(RunFiles(artifacts=tmp_path), checkpoint_every_steps=EVERY)
    whole = checkpoint(tmp_path, 100).read_bytes()
    torch.save(torch.zeros(3), tmp_path / "tensor.pt")
    tensor = (tmp_path / "tensor.pt").read_bytes()
    for content in (b"", b"no checkpoint", whole[:1000], whole[: len(whole) // 2], tensor):
        broken = tmp_path / "broken.pt"
        broken.write_bytes(content)
        with pytest.raises(CheckpointUnreadable, match="it is not a whole checkpoint"):
            train_with(RunFiles(resume=broken))


class Evil:
    def __reduce__(self):
        return (sys.exit, ("code ran",))


def test_a_checkpoint_runs_no_code(tmp_path):
    torch.save({"format": 1, "state": Evil()}, tmp_path / "evil.pt")
    with pytest.raises(CheckpointUnreadable):
        train_with(RunFiles(resume=tmp_path / "evil.pt"))


def test_a_checkpoint_of_another_job_is_refused_by_name(tmp_path):
    train_with(RunFiles(artifacts=tmp_path), checkpoint_every_steps=EVERY)
    files = RunFiles(resume=checkpoint(tmp_path, 100))
    with pytest.raises(CheckpointMismatch, match="model is mlp there and convnet here"):
        train_with(files, model="convnet")
    with pytest.raises(CheckpointMismatch, match="seed is 0 there and 5 here"):
        train_with(files, seed=5)
    with pytest.raises(CheckpointMismatch, match="from step 100, and the job ends at step 90 already"):
        train_with(files, num_steps=90)


def test_a_run_that_was_lost_after_its_last_step_is_evaluated_only(tmp_path):
    whole = train_with(RunFiles(artifacts=tmp_path), checkpoint_every_steps=EVERY)
    resumed = train_with(RunFiles(resume=checkpoint(tmp_path, JOB["num_steps"])))
    assert resumed.losses == []
    for name in ("num_steps", "num_samples", "final_train_loss", "final_eval_loss", "eval_accuracy"):
        assert getattr(resumed.summary, name) == getattr(whole.summary, name), name


def test_checkpoints_of_another_run_are_neither_removed_nor_mixed_with_this_ones(tmp_path):
    train_with(RunFiles(artifacts=tmp_path), checkpoint_every_steps=EVERY)
    spec = TrainSpec(**JOB, checkpoint_every_steps=10)
    with pytest.raises(RefusedSpec, match=r"of another run, up to step-000000120\.pt"):
        RunFiles(artifacts=tmp_path).require_for(spec)
    with pytest.raises(RefusedSpec, match="of another run"):
        RunFiles(artifacts=tmp_path, resume=checkpoint(tmp_path, 100)).require_for(spec)
    RunFiles(artifacts=tmp_path, resume=checkpoint(tmp_path, 120)).require_for(spec)
    RunFiles(artifacts=tmp_path / "other").require_for(spec)
    train_with(RunFiles(artifacts=tmp_path), num_steps=20, checkpoint_every_steps=10)  # not even by its own pruning
    assert [int(path.stem[5:]) for path in list_checkpoints(tmp_path)] == [10, 20, 100, 120]


MISSING = object()


def damage(path, **changes):
    """The same checkpoint with parts of its state replaced, or left out where that is MISSING."""
    saved = torch.load(path, weights_only=True)
    saved["state"] = {name: part for name, part in (saved["state"] | changes).items() if part is not MISSING}
    torch.save(saved, path)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"random": MISSING}, CheckpointUnreadable, "not a whole checkpoint"),
        ({"model": {"1.weight": torch.zeros(3, 4)}}, CheckpointMismatch, "does not fit this model and optimizer: "),
        ({"optimizer": {"state": {}, "param_groups": []}}, CheckpointMismatch, "different number of parameter groups"),
        ({"random": [{}]}, CheckpointMismatch, "does not fit"),
    ],
    ids=["without a part", "other shapes", "another optimizer", "no random streams"],
)
def test_a_state_that_does_not_fit_is_a_sentence(tmp_path, changes, error, words):
    train_with(RunFiles(artifacts=tmp_path), num_steps=10, checkpoint_every_steps=10)
    damage(checkpoint(tmp_path, 10), **changes)
    with pytest.raises(error, match=words):
        train_with(RunFiles(resume=checkpoint(tmp_path, 10)), num_steps=20)


def test_a_checkpoint_is_read_before_anything_is_built_and_its_copy_of_the_state_is_given_up(tmp_path, monkeypatch):
    train_with(RunFiles(artifacts=tmp_path), num_steps=10, checkpoint_every_steps=10)
    read = []
    monkeypatch.setattr(assembly, "read_checkpoint", lambda *about: read.append(read_checkpoint(*about)) or read[-1])
    train_with(RunFiles(resume=checkpoint(tmp_path, 10)), num_steps=20)
    assert read[0].state == {}
    monkeypatch.setattr(assembly, "build_model", None)
    with pytest.raises(CheckpointUnreadable):
        train_with(RunFiles(resume=tmp_path / "nowhere.pt"))


def test_a_run_that_compresses_gradients_says_what_is_not_in_its_checkpoint():
    recording = Recording()
    warn_of_what_begins_anew(TrainSpec(**JOB, ddp_comm_hook="powersgd"), Report(recording))
    warn_of_what_begins_anew(TrainSpec(**JOB), Report(recording))
    (warned,) = recording.events
    assert warned.finding.field == "ddp_comm_hook"
    assert "differ from an unbroken run's" in warned.finding.sentence


def test_each_of_these_has_an_exit_code_of_its_own(tmp_path):
    ran = run_command(write_spec(tmp_path, **JOB), "--resume", str(tmp_path / "nowhere.pt"))
    assert ran.exit_code == CheckpointUnreadable.exit_code == 10
    assert ran.stderr.endswith("nowhere.pt cannot be read: No such file or directory.\n")


def test_an_option_that_writes_files_is_refused_where_it_may_not(tmp_path):
    ran = run_command(write_spec(tmp_path, **JOB, checkpoint_every_steps=10))
    assert ran.exit_code == 3
    (finding,) = ran.finished.error.findings
    assert finding.field == "checkpoint_every_steps"
    assert "--artifacts DIR" in finding.sentence


def test_a_checkpoint_that_does_not_fit_leaves_no_half_file(tmp_path):
    def limit_file_size():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    spec = write_spec(tmp_path, **JOB, checkpoint_every_steps=10)
    ran = run_command(spec, "--artifacts", str(tmp_path / "artifacts"), preexec_fn=limit_file_size)
    assert ran.exit_code == 9, ran.finished.error
    assert "could not be written: there is no room left." in ran.finished.error.message
    assert list((tmp_path / "artifacts" / "checkpoints").iterdir()) == []
