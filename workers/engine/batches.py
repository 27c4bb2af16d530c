"""Batches without end, from a tensor on the training device or from a DataLoader; both give the same ones."""

import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch.utils.data import DataLoader, Sampler
from torch.utils.data import Dataset as TorchDataset

from jobs.contract.spec import DataLoading, TrainSpec
from workers.engine.data.dataset import Batch, Split
from workers.engine.death import die_with_parent
from workers.engine.order import BatchOrder

# Batches are gathered a block at a time: one indexing call for many steps, within a memory that no GPU notices.
_BLOCK_BYTES = 4 * 2**20
_MAX_BLOCK_BATCHES = 64


def open_batches(
    spec: TrainSpec, split: Split, order: BatchOrder, device: torch.device, num_done: int = 0
) -> Iterator[Batch]:
    """This rank's micro-batches on the device, epoch after epoch, from behind the first `num_done` steps on."""
    if spec.data_loading is DataLoading.ON_DEVICE:
        return _index_on_device(split.to(device), order, device, num_done)
    return LoadedBatches(_load(spec, split, order, num_done), device, non_blocking=spec.non_blocking)


def _index_on_device(split: Split, order: BatchOrder, device: torch.device, num_done: int) -> Iterator[Batch]:
    size = order.micro_batch_size
    batches_per_block = max(1, min(_MAX_BLOCK_BATCHES, _BLOCK_BYTES // (size * split.bytes_per_sample)))
    for epoch in order.epochs_from(num_done):
        for block in torch.split(epoch.whole.to(device), batches_per_block):
            inputs, targets = split.take(block.flatten())
            yield from zip(torch.split(inputs, size), torch.split(targets, size), strict=True)
        for indices in epoch.tail:
            yield split.take(indices.to(device))


class LoadedBatches(Iterator[Batch]):
    """A DataLoader's batches on their way to the device; waiting and copying can be timed apart."""

    def __init__(self, on_host: Iterator[Batch], device: torch.device, *, non_blocking: bool) -> None:
        self.on_host = on_host
        self._device = device
        self._non_blocking = non_blocking

    def transfer(self, batch: Batch) -> Batch:
        """The same batch on the device."""
        inputs, targets = batch
        device, non_blocking = self._device, self._non_blocking
        return inputs.to(device, non_blocking=non_blocking), targets.to(device, non_blocking=non_blocking)

    def __next__(self) -> Batch:
        return self.transfer(next(self.on_host))


def _load(spec: TrainSpec, split: Split, order: BatchOrder, num_done: int) -> Iterator[Batch]:
    sampler = EpochSampler()
    loader = DataLoader(
        Rows(split),
        batch_sampler=sampler,
        collate_fn=_as_it_is,
        num_workers=spec.num_workers,
        prefetch_factor=spec.prefetch_factor,
        persistent_workers=spec.persistent_workers,
        pin_memory=spec.pin_memory,
        generator=torch.Generator().manual_seed(spec.seed),  # seeds the loader's workers, each differently
        worker_init_fn=partial(_start_worker, os.getpid()),
    )
    for epoch in order.epochs_from(num_done):
        sampler.batches = [*epoch.whole.tolist(), *(indices.tolist() for indices in epoch.tail)]
        yield from loader


class EpochSampler(Sampler[list[int]]):
    """A batch sampler that goes through `batches`, one rank's part of an epoch; set anew before each epoch."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self.batches)

    def __len__(self) -> int:
        return len(self.batches)


class Rows(TorchDataset[Batch]):
    """A split for the DataLoader, which hands over a whole batch of indices where it finds `__getitems__`."""

    def __init__(self, split: Split) -> None:
        self._split = split

    def __len__(self) -> int:
        return len(self._split)

    def __getitems__(self, indices: list[int]) -> Batch:
        """The batch at `indices`, taken in one indexing call."""
        return self._split.take(torch.tensor(indices))


def _as_it_is(batch: Any) -> Any:
    return batch


def _start_worker(engine_pid: int, worker_id: int) -> None:
    die_with_parent(engine_pid)  # a fork does not inherit its parent's tie
