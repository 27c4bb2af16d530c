"""Hugging Face Accelerate: its own loop, `prepare` and `backward`."""

from typing import Any

from accelerate import Accelerator

from benchmarks.loops.shared import Log, Work, compute_loss


def train(spec: dict[str, Any]) -> None:
    """Train without end."""
    work, log = Work.of(spec), Log()
    accelerator = Accelerator(cpu=True)
    model, optimizer = accelerator.prepare(work.model, work.optimizer)
    for inputs, targets in work.batches:
        optimizer.zero_grad()
        loss = compute_loss(model(inputs), targets)
        accelerator.backward(loss)
        optimizer.step()
        log.add(loss)
