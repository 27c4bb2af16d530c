"""What a run is given, before anything is built: its spec, its data, its device and its place among the ranks."""

from dataclasses import dataclass

import torch

from jobs.contract.metrics import Summary
from jobs.contract.spec import Parallelism, Task, TrainSpec
from workers.engine.data.dataset import Dataset
from workers.engine.files import RunFiles
from workers.engine.parallel import Exchange, Rank
from workers.engine.report import Report


@dataclass(frozen=True)
class Setting:
    """One rank's ground; `spec` is resolved, and `report` is told as the run goes on."""

    spec: TrainSpec
    dataset: Dataset
    device: torch.device
    rank: Rank
    exchange: Exchange
    report: Report
    files: RunFiles

    @property
    def summary(self) -> Summary:
        """What was measured so far."""
        return self.report.summary

    @property
    def devices(self) -> list[torch.device]:
        """All devices of this process: one, but for data_parallel."""
        if self.spec.parallelism is not Parallelism.DATA_PARALLEL:
            return [self.device]
        return [torch.device("cuda", index) for index in range(self.spec.num_devices)]

    @property
    def is_training(self) -> bool:
        """Whether weights are updated; otherwise steps are forward passes."""
        return self.spec.task is Task.TRAIN

    @property
    def has_loss(self) -> bool:
        """Whether the loss of a step means something: not on made-up data."""
        return self.is_training and not self.dataset.is_synthetic
