import time

import pytest
import torch
from engine_runs import train
from torch import nn
from two_ranks import train_on_two_ranks

from jobs.contract.spec import TrainSpec
from workers.engine.batches import LoadedBatches
from workers.engine.phases import BACKWARD, DATA_WAIT, FORWARD, HOST_TO_DEVICE, OPTIMIZER, measure_phases
from workers.engine.step import build_step
from workers.engine.update import Update

CPU = torch.device("cpu")
PAUSES_S = {DATA_WAIT: 0.004, FORWARD: 0.006, OPTIMIZER: 0.008}


def slow_parts(batches=None, grad_accum_steps=1):
    """Phases of a step whose parts sleep for known times."""
    model = nn.Linear(1, 1)
    update = Update(TrainSpec(optimizer="sgd", num_steps=1), model, None)
    optimizer = update.optimizer

    def slow_batches():
        while True:
            time.sleep(PAUSES_S[DATA_WAIT])
            yield torch.ones(1, 1), torch.ones(1, 1)

    def slow_loss(batch):
        time.sleep(PAUSES_S[FORWARD])
        return model(batch[0]).sum()

    optimizer.register_step_post_hook(lambda *_: time.sleep(PAUSES_S[OPTIMIZER]))

    def make_step(loss, source):
        return build_step(model, loss, update, source, grad_accum_steps)

    source = batches(slow_batches()) if batches else slow_batches()
    phases_ms = measure_phases(make_step, slow_loss, source, optimizer, CPU, num_steps=3)
    assert not optimizer._optimizer_step_pre_hooks
    return phases_ms


def test_each_part_gets_its_own_time():
    phases_ms = slow_parts()
    for phase, pause_s in PAUSES_S.items():
        assert phases_ms[phase] >= 1e3 * pause_s
    assert phases_ms[BACKWARD] > 0
    assert HOST_TO_DEVICE not in phases_ms


def test_micro_batches_of_a_step_add_up():
    phases_ms = slow_parts(grad_accum_steps=3)
    assert phases_ms[FORWARD] >= 3e3 * PAUSES_S[FORWARD]
    assert phases_ms[DATA_WAIT] >= 3e3 * PAUSES_S[DATA_WAIT]


def test_the_copy_to_the_device_is_apart_where_batches_come_from_the_host():
    phases_ms = slow_parts(lambda source: LoadedBatches(source, CPU, non_blocking=False))
    assert phases_ms[HOST_TO_DEVICE] > 0
    assert phases_ms[DATA_WAIT] >= 1e3 * PAUSES_S[DATA_WAIT]


def test_a_run_tells_its_phases_and_they_change_no_result(baseline):
    summary = baseline.summary
    for phase in (summary.phase_data_wait_ms, summary.phase_forward_ms, summary.phase_backward_ms):
        assert phase > 0
    assert summary.phase_optimizer_ms > 0
    assert summary.phase_host_to_device_ms is None
    without = train(phase_steps=0)
    assert without.summary.phase_forward_ms is None
    assert without.losses == pytest.approx(baseline.losses, abs=1e-6)
    assert without.summary.final_eval_loss == pytest.approx(summary.final_eval_loss, abs=1e-6)


@pytest.fixture(scope="module")
def on_two_ranks(tmp_path_factory):
    ddp, fsdp = ({"parallelism": name, "micro_batch_size": 8} for name in ("ddp", "fsdp2"))
    return train_on_two_ranks(tmp_path_factory.mktemp("ranks"), ddp=ddp, fsdp2=fsdp)


@pytest.mark.parametrize("parallelism", ["ddp", "fsdp2"])
def test_exposed_communication_is_measured_between_ranks_only(on_two_ranks, baseline, parallelism):
    assert baseline.summary.phase_communication_exposed_ms is None
    ran = on_two_ranks[parallelism]
    assert ran.summary.phase_communication_exposed_ms is not None
    assert ran.summary.phase_backward_ms > 0
    assert ran.losses == pytest.approx(baseline.losses, abs=1e-5)
