"""What every data set looks like to the engine: two splits of tensors and the sizes that a model needs."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional

from jobs.contract.catalog import DataKind, Target
from jobs.contract.spec import TrainSpec

Batch = tuple[Tensor, Tensor]  # inputs and targets, on the training device


@dataclass(frozen=True)
class Sizes:
    """What a spec asks of its data's sizes; None leaves the data set's own."""

    image_size: int | None = None
    sequence_length: int | None = None

    @classmethod
    def of(cls, spec: TrainSpec) -> "Sizes":
        """The sizes in a spec."""
        return cls(spec.image_size, spec.sequence_length)


@dataclass(frozen=True)
class Split:
    """N samples in one tensor; `labels` (N,) is None where a sample holds its own targets, one token ahead.

    Samples are images (N, channels, height, width) as float32 or as bytes, vectors (N, width) as float32, or tokens
    (N, length) of any whole type. Labels are int64 class numbers, or float32 values.
    """

    samples: Tensor
    labels: Tensor | None = None
    num_repeats: int = 1  # made-up samples come round this many times, so that a long epoch needs little memory

    def __len__(self) -> int:
        return len(self.samples) * self.num_repeats

    def to(self, device: torch.device) -> "Split":
        """The same split in a device's memory."""
        labels = None if self.labels is None else self.labels.to(device)
        return replace(self, samples=self.samples.to(device), labels=labels)

    def take(self, indices: Tensor) -> Batch:
        """Inputs and targets of the samples at `indices` (n,)."""
        if self.num_repeats > 1:
            indices = indices % len(self.samples)
        samples = self.samples[indices]
        if self.labels is not None:
            return _as_input(samples), self.labels[indices]
        tokens = samples.long()
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    @property
    def bytes_per_sample(self) -> int:
        """Memory of one sample once it is taken into a batch."""
        inputs, targets = self.take(torch.zeros(1, dtype=torch.long, device=self.samples.device))
        return inputs.nbytes + targets.nbytes


@dataclass(frozen=True)
class Dataset:
    """A loaded data set. `revision` names its exact content: equal revisions give equal batches."""

    kind: DataKind
    target: Target
    revision: str
    sample_shape: tuple[int, ...]  # of one model input
    num_classes: int  # labels of a classifier, the size of a vocabulary, or 1 where the target is a value
    train: Split
    evaluation: Split
    vocabulary: int | None = None  # how many tokens there are, in sequences that have a class
    padding: int | None = None  # the token that fills up sequences which are shorter than the others
    is_synthetic: bool = False

    def at_image_size(self, size: int | None) -> "Dataset":
        """The same images at another height and width (bilinear); the same data set where they have it already."""
        channels, *own = self.sample_shape
        if size is None or own == [size, size]:
            return self
        train, evaluation = (_resize(split, size) for split in (self.train, self.evaluation))
        return replace(self, sample_shape=(channels, size, size), train=train, evaluation=evaluation)


def _as_input(samples: Tensor) -> Tensor:
    """Images of bytes become 0..1, tokens become indices, float numbers stay."""
    if samples.is_floating_point():
        return samples
    return samples.float().div_(255) if samples.dim() == 4 else samples.long()


def _resize(split: Split, size: int) -> Split:
    resized = [
        functional.interpolate(_as_input(part), (size, size), mode="bilinear", antialias=True)
        for part in torch.split(split.samples, 256)  # bounds the float copies of byte images
    ]
    samples = torch.cat(resized)
    if split.samples.dtype is torch.uint8:
        samples = samples.mul_(255).round_().to(torch.uint8)
    return replace(split, samples=samples)
