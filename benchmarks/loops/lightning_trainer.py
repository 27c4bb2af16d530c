"""Lightning's Trainer with everything switched off that the plain loop does not do either."""

from typing import Any

import lightning
from torch import Tensor, optim

from benchmarks.loops.shared import Log, Work, compute_loss


def train(spec: dict[str, Any]) -> None:
    """Train without end."""
    work = Work.of(spec)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=1,
        max_steps=spec["num_steps"],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Module(work), train_dataloaders=work.batches)


class Module(lightning.LightningModule):
    """The model with its loss and optimizer."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self.model = work.model
        self._optimizer = work.optimizer
        self._record = Log()

    def configure_optimizers(self) -> optim.Optimizer:
        """See Lightning."""
        return self._optimizer

    def training_step(self, batch: tuple[Tensor, Tensor], _index: int) -> Tensor:
        """See Lightning."""
        inputs, targets = batch
        return compute_loss(self.model(inputs), targets)

    def on_train_batch_end(self, outputs: Any, _batch: Any, _index: int) -> None:
        """See Lightning."""
        self._record.add(outputs["loss"])
