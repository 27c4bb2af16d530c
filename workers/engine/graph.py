"""The whole step as one CUDA graph: recorded once, then replayed with new data in the same memory.

A replay repeats the recorded kernels on the recorded addresses. So batches are copied into buffers that stay where
they are, the learning rate is a tensor, and nothing in the step asks the host. Warm-up and recording follow
https://docs.pytorch.org/docs/stable/notes/cuda.html#whole-network-capture
"""

import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from jobs.contract.metrics import Summary
from jobs.contract.rules.acceleration import graph_warmup_steps
from jobs.contract.spec import TrainSpec
from workers.engine.data.dataset import Batch
from workers.engine.step import LossFunction, Step, build_gradients
from workers.engine.update import Update


def build_graphed_step(
    spec: TrainSpec,
    model: nn.Module,
    compute_loss: LossFunction,
    update: Update,
    batches: Iterator[Batch],
    summary: Summary,
) -> Step:
    """The step that `build_step` gives, recorded after its warm-up; `model` as it was wrapped."""
    static = StaticBatches(batches, spec.grad_accum_steps)
    compute_gradients = build_gradients(model, compute_loss, update.scaler, static, spec.grad_accum_steps)
    apply_gradients = update.build_apply()

    def body() -> Tensor:
        loss = compute_gradients()
        apply_gradients()
        return loss

    move_learning_rate = update.scheduler.step if update.scheduler else None
    return GraphedStep(body, static, move_learning_rate, graph_warmup_steps(spec.parallelism), summary)


class StaticBatches:
    """The same buffers at every step, one per micro-batch; `fill` puts the next real batches into them."""

    def __init__(self, batches: Iterator[Batch], grad_accum_steps: int) -> None:
        self._batches = batches
        self._count = grad_accum_steps
        self._buffers: list[Batch] = []
        self._next = 0

    def fill(self) -> None:
        """Copy a step's batches in."""
        if not self._buffers:
            for inputs, targets in (next(self._batches) for _ in range(self._count)):
                self._buffers.append((inputs.clone(), targets.clone()))
            return
        for buffers in self._buffers:
            for buffer, tensor in zip(buffers, next(self._batches), strict=True):
                buffer.copy_(tensor, non_blocking=True)

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        batch = self._buffers[self._next % self._count]
        self._next += 1
        return batch


class GraphedStep:
    """A step that trains from its first call on: eagerly while it warms up, then recorded, then replayed.

    `body` computes gradients from `static` and applies them; `move_learning_rate` stays on the host.
    """

    def __init__(
        self,
        body: Step,
        static: StaticBatches,
        move_learning_rate: Callable[[], None] | None,
        num_warmup_steps: int,
        summary: Summary,
    ) -> None:
        self._body = body
        self._static = static
        self._move_learning_rate = move_learning_rate
        self._num_left_to_warm_up = num_warmup_steps
        self._summary = summary
        self._side_stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self._graph: torch.cuda.CUDAGraph | None = None
        self._loss: Tensor | None = None

    def __call__(self) -> Tensor:
        """Take one step; returns its loss, which the next step leaves alone."""
        self._static.fill()
        if self._num_left_to_warm_up > 0:
            self._num_left_to_warm_up -= 1
            loss = self._take_eagerly()
        else:
            loss = self._replay()
        if self._move_learning_rate is not None:
            self._move_learning_rate()
        return loss

    def _take_eagerly(self) -> Tensor:
        current = torch.cuda.current_stream()
        self._side_stream.wait_stream(current)
        with torch.cuda.stream(self._side_stream):
            loss = self._body()
        current.wait_stream(self._side_stream)
        return loss.clone()

    def _replay(self) -> Tensor:
        if self._graph is None:
            self._graph = self._record()
        self._graph.replay()
        assert self._loss is not None  # noqa: S101 - recorded with the graph
        return self._loss.clone()

    def _record(self) -> torch.cuda.CUDAGraph:
        """Recording runs nothing: the step itself is taken by the replay that follows."""
        torch.cuda.synchronize()
        began_s = time.perf_counter()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._loss = self._body()
        torch.cuda.synchronize()
        self._summary.capture_s = time.perf_counter() - began_s
        return graph
