import errno
import math

import pytest
import torch
from engine_runs import train
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from jobs.contract.errors import DataMissing, DiskFull, RankFailed
from jobs.contract.metrics import Summary
from jobs.contract.spec import TrainSpec
from jobs.contract.states import Outcome
from workers.engine.data.dataset import Split
from workers.engine.failure import Terminated, failure_from
from workers.engine.inventory import list_consumers
from workers.engine.launch import first_failure
from workers.engine.out_of_memory import read_asked_bytes
from workers.engine.rank import RankFailure
from workers.engine.report import Report


def at(phase: str = "training", step: int | None = 7, spec: TrainSpec | None = None) -> Report:
    report = Report(None)
    report.spec = spec
    report.phase, report.step = phase, step
    return report


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp:118] DefaultCPUAllocator: can't allocate memory: you tried ..."),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_every_allocators_refusal_is_out_of_memory(error):
    failure = failure_from(error, at())
    assert (failure.outcome, failure.exit_code) == (Outcome.OUT_OF_MEMORY, 6)
    assert failure.error.message.startswith("Memory ran out in phase training at step 7")
    assert (failure.error.phase, failure.error.step) == ("training", 7)


@pytest.mark.parametrize(
    ("message", "asked_bytes"),
    [
        ("DefaultCPUAllocator: can't allocate memory: you tried to allocate 3932160000 bytes.", 3932160000),
        ("CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has", round(2.5 * 2**30)),
        ("std::bad_alloc", None),
    ],
)
def test_what_was_asked_for_is_read_from_the_allocators_words(message, asked_bytes):
    assert read_asked_bytes(message) == asked_bytes


@pytest.mark.parametrize(
    ("micro", "accumulation", "proposed"), [(8, 1, (4, 2)), (9, 2, (3, 6)), (7, 1, (1, 7)), (1, 4, None)]
)
def test_the_proposal_keeps_the_global_batch(micro, accumulation, proposed):
    spec = TrainSpec(num_steps=1, micro_batch_size=micro, grad_accum_steps=accumulation)
    failure = failure_from(MemoryError(), at(spec=spec))
    if proposed is None:
        assert failure.error.proposed_spec is None
        assert "no smaller micro-batch" in failure.error.message
        return
    found = failure.error.proposed_spec
    assert (found.micro_batch_size, found.grad_accum_steps) == proposed
    assert found.global_batch_size == spec.global_batch_size
    assert f"A micro-batch of {proposed[0]} with {proposed[1]} accumulated" in failure.error.message


def test_what_is_proposed_helps_in_evaluation_as_well(monkeypatch):
    sizes = []

    class Noting(torch.nn.Sequential):
        def forward(self, inputs):
            sizes.append(len(inputs))
            return super().forward(inputs)

    model = Noting(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    monkeypatch.setattr("workers.engine.assembly.build_model", lambda *_about: model)
    assert math.isfinite(train(micro_batch_size=3, num_steps=1, phase_steps=0).summary.final_eval_loss)
    assert sum(sizes) > 300
    assert max(sizes) == 3


def test_the_three_largest_holders_of_memory_are_named():
    report = at()
    report.inventory = lambda: {"weights": 30, "gradients": 10, "optimizer state": 60, "data set": 20}
    largest = failure_from(MemoryError(), report).error.memory.largest
    names = [(holder.name, holder.size_bytes) for holder in largest]
    assert names[:3] == [("optimizer state", 60), ("weights", 30), ("data set", 20)]


def test_the_inventory_counts_what_torch_holds():
    model = torch.nn.Linear(10, 10)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 10)).sum().backward()
    optimizer.step()
    held = list_consumers(model, optimizer, Split(torch.zeros(5, 10), torch.zeros(5)))
    assert (held["weights"], held["gradients"], held["data set"]) == (440, 440, 220)
    assert held["optimizer state"] == 2 * 440 + 2 * 4  # two moments, and a count of steps per tensor


@pytest.mark.parametrize(("backend", "exit_code"), [("flash", 3), ("auto", 1)])
def test_a_forced_kernel_that_cannot_do_it_is_refused_by_name(backend, exit_code):
    query, value = torch.ones(1, 1, 4, 8), torch.ones(1, 1, 4, 16)  # flash wants all of one width
    spec = TrainSpec(num_steps=1, sdpa_backend=backend)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION), pytest.raises(RuntimeError) as caught:
        scaled_dot_product_attention(query, query, value)
    failure = failure_from(caught.value, at(spec=spec))
    assert failure.exit_code == exit_code
    assert [finding.field for finding in failure.error.findings] == ["sdpa_backend"] * (exit_code == 3)


def test_no_room_on_the_disk_is_a_sentence_of_its_own():
    failure = failure_from(OSError(errno.ENOSPC, "No space left on device", "trace.json"), at())
    assert failure.exit_code == DiskFull.exit_code
    assert failure.error.message.startswith("trace.json could not be written: there is no room left.")


def test_other_errors_are_not():
    assert failure_from(RuntimeError("shapes differ"), at()).outcome is Outcome.FAILED
    assert failure_from(ValueError("out of memory"), at()).outcome is Outcome.FAILED


def test_a_named_error_keeps_its_sentence_and_exit_code():
    failure = failure_from(DataMissing("Put it there."), at("building", None))
    assert (failure.exit_code, failure.error.message) == (4, "Put it there.")


@pytest.mark.parametrize(("error", "exit_code"), [(Terminated(), 143), (KeyboardInterrupt(), 130)])
def test_being_told_to_stop_is_cancelled(error, exit_code):
    failure = failure_from(error, at())
    assert (failure.outcome, failure.exit_code) == (Outcome.CANCELLED, exit_code)


def leave(folder, rank, failed_at_ns, error):
    failure = failure_from(error, at())
    info = failure.error.model_copy(update={"rank": rank})
    left = RankFailure(failed_at_ns=failed_at_ns, outcome=failure.outcome, exit_code=failure.exit_code, error=info)
    (folder / f"rank-{rank}.failure").write_text(left.model_dump_json())


def test_the_earliest_failure_is_the_cause(tmp_path):
    leave(tmp_path, 0, 2_000, RuntimeError("Connection closed by peer"))
    leave(tmp_path, 1, 1_000, ValueError("the cause"))
    failure = first_failure(tmp_path, 1, b"", at())
    assert (failure.error.rank, failure.exit_code) == (1, RankFailed.exit_code)
    assert "the cause" in failure.error.message


def test_a_ranks_named_error_ends_the_run_as_it_would_alone(tmp_path):
    leave(tmp_path, 1, 1_000, MemoryError())
    failure = first_failure(tmp_path, 1, b"", at())
    assert (failure.outcome, failure.exit_code, failure.error.rank) == (Outcome.OUT_OF_MEMORY, 6, 1)


TABLE = b"""
  rank      : 0 (local_rank: 0)
  exitcode  : 1 (pid: 10)
  rank      : 2 (local_rank: 2)
  exitcode  : -15 (pid: 12)  (SIGTERM)
  rank      : 1 (local_rank: 1)
  exitcode  : -9 (pid: 11)  (SIGKILL)
"""


def test_a_killed_rank_is_the_cause_of_its_peers_errors(tmp_path):
    leave(tmp_path, 0, 1_000, RuntimeError("Connection closed by peer"))
    failure = first_failure(tmp_path, 1, TABLE, at())
    assert failure.error.rank == 1
    assert "SIGKILL" in failure.error.message


def test_a_launcher_that_fails_alone_is_told_too(tmp_path):
    failure = first_failure(tmp_path, 3, b"no module named torch", at())
    assert failure.error.message == "The run failed: the launcher ended with exit code 3 and no rank said why."
    assert "no module named torch" in failure.error.traceback


def test_a_report_without_a_stream_tells_nobody_and_keeps_its_phase():
    report = Report(None)
    report.enter("building")
    assert (report.phase, report.summary) == ("building", Summary())
