"""Hugging Face's Trainer with everything switched off that the plain loop does not do either."""

import tempfile
from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, IterableDataset
from transformers import Trainer, TrainingArguments

from benchmarks.loops.shared import Batches, Log, Work, compute_loss


def train(spec: dict[str, Any]) -> None:
    """Train without end."""
    work = Work.of(spec)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=spec["num_steps"],
            use_cpu=True,
            max_grad_norm=0,
            logging_strategy="no",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            remove_unused_columns=False,
        )
        constant = LambdaLR(work.optimizer, lambda _step: 1.0)
        trainer = _Trainer(
            work.model, arguments, train_dataset=Rows(work.batches), optimizers=(work.optimizer, constant)
        )
        trainer.train()


class Rows(IterableDataset[dict[str, Tensor]]):
    """Whole batches, by name."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        for inputs, targets in self._batches:
            yield {"inputs": inputs, "targets": targets}


class _Trainer(Trainer):
    """The Trainer with our loss; batches come as they are."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._record = Log()

    def get_train_dataloader(self) -> DataLoader[Any]:
        """See Trainer; no collating, for batches are whole already."""
        return DataLoader(self.train_dataset, batch_size=None)

    def compute_loss(self, model: nn.Module, inputs: dict[str, Tensor], *_rest: Any, **_more: Any) -> Tensor:
        """See Trainer."""
        return compute_loss(model(inputs["inputs"]), inputs["targets"])

    def training_step(self, *arguments: Any, **keywords: Any) -> Tensor:
        """See Trainer; the loss of the step goes into the log."""
        loss = super().training_step(*arguments, **keywords)
        self._record.add(loss)
        return loss
