"""What the loader's options do, seen from inside its workers."""

import os
import time
from itertools import islice

import torch
from engine_runs import DIGITS

from jobs.contract.spec import TrainSpec
from workers.engine.batches import open_batches
from workers.engine.data.dataset import Split
from workers.engine.order import BatchOrder

NUM_SAMPLES, SIZE = 40, 4
PER_EPOCH = NUM_SAMPLES // SIZE


class Spy(Split):
    """A split whose batches tell the process and the random seed that they were made with."""

    taken = torch.zeros(1).share_memory_()  # how many batches were made, in all processes

    def take(self, indices):
        self.taken += 1
        return torch.tensor([os.getpid(), torch.initial_seed() % 2**40]), indices


def spied(**fields):
    Spy.taken.zero_()
    split = Spy(torch.zeros(NUM_SAMPLES, 1))
    spec = TrainSpec(**DIGITS | {"micro_batch_size": SIZE, "data_loading": "dataloader"} | fields)
    return open_batches(spec, split, BatchOrder.of(spec, NUM_SAMPLES, rank=0), torch.device("cpu"))


def makers(batches, count=PER_EPOCH):
    """(process, seed) of each batch."""
    return [tuple(inputs.tolist()) for inputs, _targets in islice(batches, count)]


def test_without_workers_batches_are_made_in_this_process():
    assert {process for process, _seed in makers(spied())} == {os.getpid()}


def test_workers_are_other_processes_as_many_as_asked_for():
    processes = {process for process, _seed in makers(spied(num_workers=2))}
    assert len(processes) == 2
    assert os.getpid() not in processes


def test_persistent_workers_stay_from_one_epoch_to_the_next():
    batches = spied(num_workers=2, persistent_workers=True)
    first, second = ({process for process, _seed in makers(batches)} for _epoch in range(2))
    assert first == second


def test_other_workers_are_new_in_each_epoch():
    batches = spied(num_workers=2)
    first, second = ({process for process, _seed in makers(batches)} for _epoch in range(2))
    assert first.isdisjoint(second)


def test_each_worker_has_a_seed_of_its_own_that_follows_the_jobs():
    seeds = [{seed for _process, seed in makers(spied(num_workers=2, seed=number))} for number in (1, 1, 2)]
    assert len(seeds[0]) == 2
    assert seeds[0] == seeds[1]
    assert seeds[0].isdisjoint(seeds[2])


def test_a_worker_keeps_no_more_batches_ready_than_asked_for():
    for factor in (1, 3):
        batches = spied(num_workers=1, prefetch_factor=factor)
        next(batches)
        ends = time.monotonic() + 20
        while Spy.taken.item() < 1 + factor and time.monotonic() < ends:
            time.sleep(0.01)
        time.sleep(0.2)  # for what would come beyond
        assert Spy.taken.item() == 1 + factor
        del batches
