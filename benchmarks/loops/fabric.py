"""Lightning Fabric: its own loop, `setup` and `backward`."""

from typing import Any

from lightning.fabric import Fabric

from benchmarks.loops.shared import Log, Work, compute_loss


def train(spec: dict[str, Any]) -> None:
    """Train without end."""
    work, log = Work.of(spec), Log()
    fabric = Fabric(accelerator="cpu", devices=1)
    model, optimizer = fabric.setup(work.model, work.optimizer)
    for inputs, targets in work.batches:
        optimizer.zero_grad()
        loss = compute_loss(model(inputs), targets)
        fabric.backward(loss)
        optimizer.step()
        log.add(loss)
