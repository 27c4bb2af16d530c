"""Which samples each rank trains on, in which order: the same global batches however the work is shared out."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import torch
from torch import Tensor

from jobs.contract.lengths import count_steps_per_epoch
from jobs.contract.spec import TrainSpec


@dataclass(frozen=True)
class Epoch:
    """One rank's sample indices, in the order they are taken: micro-batches of full size, then those of the tail."""

    whole: Tensor  # (micro-batches, micro_batch_size)
    tail: list[Tensor]  # of the incomplete last global batch; empty where there is none


@dataclass(frozen=True)
class BatchOrder:
    """One rank's part of every global batch.

    Each epoch is a permutation from the seed. Global batch k is its k-th stretch of global_batch_size samples; the
    incomplete last one is dropped, or kept as the epoch's tail. Within a batch each rank takes one stretch, cut into
    micro-batches. Those of a tail differ in size, so that each weighs as many samples as it has.
    """

    num_samples: int
    seed: int
    micro_batch_size: int
    grad_accum_steps: int
    num_ranks: int
    rank: int
    drop_last: bool = True

    @classmethod
    def of(cls, spec: TrainSpec, num_samples: int, rank: int) -> "BatchOrder":
        """The order that a spec asks for over `num_samples` training samples."""
        sizes = (spec.micro_batch_size, spec.grad_accum_steps, spec.num_ranks)
        return cls(num_samples, spec.seed, *sizes, rank, spec.drop_last)

    @property
    def steps_per_epoch(self) -> int:
        """Global batches in the training split, the incomplete last one included where it is kept."""
        return count_steps_per_epoch(self.num_samples, self._global_batch_size, drop_last=self.drop_last)

    @property
    def tail_size(self) -> int:
        """Samples of the incomplete last global batch over all ranks; 0 where it is dropped or there is none."""
        return 0 if self.drop_last else self.num_samples % self._global_batch_size

    @property
    def smallest_micro_batch(self) -> int:
        """The fewest samples that any rank's forward pass sees."""
        sizes = [size for rank in range(self.num_ranks) for size in self._tail_sizes(rank)]
        return max(1, min([self.micro_batch_size, *sizes]))  # a rank without a sample takes one that counts for nothing

    @property
    def _global_batch_size(self) -> int:
        return self.micro_batch_size * self.grad_accum_steps * self.num_ranks

    @property
    def _num_whole(self) -> int:
        return self.num_samples // self._global_batch_size

    def count_samples(self, num_steps: int) -> int:
        """Samples that all ranks together have seen after so many steps."""
        num_epochs, rest = divmod(num_steps, self.steps_per_epoch)
        return (
            num_epochs * (self._num_whole * self._global_batch_size + self.tail_size) + rest * self._global_batch_size
        )

    def epoch(self, number: int) -> Epoch:
        """This rank's part of one epoch."""
        generator = torch.Generator().manual_seed((self.seed << 32) + number)
        shape = (self._num_whole, self.num_ranks, self.grad_accum_steps, self.micro_batch_size)
        permutation = torch.randperm(self.num_samples, generator=generator)
        num_in_whole = torch.Size(shape).numel()
        batches = permutation[:num_in_whole].view(shape)
        tail = permutation[num_in_whole:][: self.tail_size]
        return Epoch(batches[:, self.rank].reshape(-1, self.micro_batch_size), self._own_tail(tail))

    def _own_tail(self, tail: Tensor) -> list[Tensor]:
        """As many micro-batches on every rank, for they exchange; one without samples takes one that weighs nothing."""
        parts = torch.split(torch.tensor_split(tail, self.num_ranks)[self.rank], self._tail_sizes(self.rank))
        return [part if len(part) else tail[:1] for part in parts]

    def _tail_sizes(self, rank: int) -> list[int]:
        """True sizes of a rank's micro-batches in the tail: full ones, then what is left, then none."""
        share, num_with_one_more = divmod(self.tail_size, self.num_ranks)
        num_micro_batches = math.ceil((share + (num_with_one_more > 0)) / self.micro_batch_size)
        own = share + (rank < num_with_one_more)
        before = [index * self.micro_batch_size for index in range(num_micro_batches)]
        return [max(0, min(self.micro_batch_size, own - start)) for start in before]

    def epochs_from(self, num_done: int) -> Iterator[Epoch]:
        """Epoch after epoch without end, the first one without the `num_done` steps that were taken already."""
        first, num_skipped = divmod(num_done, self.steps_per_epoch)
        begun = self.epoch(first)
        yield Epoch(begun.whole[num_skipped * self.grad_accum_steps :], begun.tail)
        for number in count(first + 1):
            yield self.epoch(number)

    def weights_from(self, num_done: int) -> Iterator[list[float]]:
        """Step after step the weights of this rank's micro-batches, from behind the first `num_done` steps on.

        With them the mean over ranks of the weighted mean losses is the mean over the global batch's samples.
        """
        whole = [1 / self.grad_accum_steps] * self.grad_accum_steps
        tail = [size * self.num_ranks / self.tail_size for size in self._tail_sizes(self.rank)]
        for step in count(num_done):
            yield tail if step % self.steps_per_epoch == self._num_whole else whole
