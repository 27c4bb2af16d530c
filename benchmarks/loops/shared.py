"""What the frameworks' loops have in common with the plain one: model, batches in the same order, loss, and a log."""

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn, optim
from torch.nn import functional

from benchmarks.loops.plain import READ_EVERY_S
from workers.engine.data import load_dataset
from workers.engine.data.dataset import Split
from workers.engine.models import build_model


@dataclass(frozen=True)
class Work:
    """A model with torch's Adam as it comes, and its batches without end."""

    model: nn.Module
    optimizer: optim.Optimizer
    batches: "Batches"

    @classmethod
    def of(cls, spec: dict[str, Any]) -> "Work":
        """As the plain loop builds it."""
        torch.set_num_threads(spec["num_threads"])
        torch.manual_seed(spec["seed"])
        dataset = load_dataset(spec["dataset"])
        model = build_model(spec["model"], dataset)
        batches = Batches(dataset.train, spec["micro_batch_size"], spec["seed"])
        return cls(model, optim.Adam(model.parameters(), lr=1e-3), batches)


@dataclass(frozen=True)
class Batches:
    """Indexed from a tensor in memory, epoch after epoch; cheaper than any DataLoader."""

    split: Split
    size: int
    seed: int

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        samples, labels, epoch = self.split.samples, self.split.labels, 0
        while True:
            generator = torch.Generator().manual_seed((self.seed << 32) + epoch)
            order = torch.randperm(len(samples), generator=generator)
            for start in range(0, len(samples) - self.size + 1, self.size):
                indices = order[start : start + self.size]
                if labels is not None:
                    yield samples[indices], labels[indices]
                else:
                    tokens = samples[indices].long()
                    yield tokens[:, :-1], tokens[:, 1:]
            epoch += 1


def compute_loss(outputs: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy, over positions too where there are any."""
    if outputs.dim() > 2:
        outputs, targets = outputs.flatten(0, 1), targets.flatten()
    return functional.cross_entropy(outputs, targets)


class Log:
    """Each step's loss and time on standard output, read from the device as often as the engine does."""

    def __init__(self) -> None:
        self._losses: list[Tensor] = []
        self._seconds: list[float] = []
        self._num_read = 0
        self._began_s = self._read_s = time.perf_counter()

    def add(self, loss: Tensor) -> None:
        """A step has been taken."""
        self._losses.append(loss.detach())
        now_s = time.perf_counter()
        self._seconds.append(now_s - self._began_s)
        if now_s - self._read_s > READ_EVERY_S:
            self._write()
            self._read_s = now_s

    def _write(self) -> None:
        steps = list(range(self._num_read + 1, self._num_read + len(self._losses) + 1))
        series = {"train_loss": torch.stack(self._losses).tolist()}
        line = json.dumps({"type": "points", "steps": steps, "wall_s": self._seconds, "series": series})
        sys.__stdout__.write(line + "\n")
        sys.__stdout__.flush()
        self._num_read += len(self._losses)
        self._losses, self._seconds = [], []
