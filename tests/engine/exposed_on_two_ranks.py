"""One of two ranks that wait for known times, to see how much of it is told as exposed communication.

`python exposed_on_two_ranks.py FOLDER RANK`: rank 0 leaves FOLDER/exposed.json, of each case the milliseconds a step
told and those that a clock around the collectives counted.
"""

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.fsdp._fully_shard._fsdp_collectives import DefaultAllGather, DefaultReduceScatter

from jobs.contract.spec import TrainSpec
from workers.engine.parallel import without_communication, wrap_model
from workers.engine.phases import measure_exposed_communication
from workers.engine.step import build_step
from workers.engine.update import Update

CPU = torch.device("cpu")
NUM_STEPS = 5
DELAY_S = 0.05  # many times what a collective takes on a busy machine
WIDTH = 8
NUM_COLLECTIVES = 8  # of a step: two blocks gathered for each pass, the rest once; three reductions


class Block(nn.Linear):
    """Computes for `pause_s`, and may have the next block's weights gathered meanwhile."""

    def __init__(self, pause_s: float) -> None:
        super().__init__(WIDTH, WIDTH)
        self.pause_s = pause_s
        self.gather_next: Callable[[], object] = object  # does nothing

    def forward(self, values: Tensor) -> Tensor:
        self.gather_next()
        time.sleep(self.pause_s)
        return super().forward(values)


class Model(nn.Module):
    def __init__(self, pause_s: float = 0.0) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(pause_s) for _ in range(2))
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, values: Tensor) -> Tensor:
        for block in self.blocks:
            values = block(values)
        return self.head(values)


class Late(dist.Work):
    """A collective that arrives at a given time at the earliest."""

    def __init__(self, work: dist.Work, at_s: float) -> None:
        super().__init__()
        self.work, self.at_s = work, at_s

    def wait(self, *_: Any) -> bool:
        self.work.wait()
        time.sleep(max(0.0, self.at_s - time.perf_counter()))
        return True


class SlowNetwork:
    """Has every collective of FSDP2 take `delay_s` longer, and keeps the time in each that is waited for at once."""

    def __init__(self, delay_s: float) -> None:
        self.delay_s, self.waited_s = delay_s, list[float]()
        self.sent = {kind: kind.__call__ for kind in (DefaultAllGather, DefaultReduceScatter)}

    def __enter__(self) -> "SlowNetwork":
        for kind, send in self.sent.items():
            kind.__call__ = self.slowed(send)
        return self

    def __exit__(self, *_: object) -> None:
        for kind, send in self.sent.items():
            kind.__call__ = send

    def slowed(self, send: Callable[..., dist.Work | None]) -> Callable[..., dist.Work | None]:
        def slow(*args: Any, **named: Any) -> dist.Work | None:
            began_s = time.perf_counter()
            work = send(*args, **named)
            if named.get("async_op"):
                return Late(work, began_s + self.delay_s)
            time.sleep(self.delay_s)
            self.waited_s.append(time.perf_counter() - began_s)
            return None

        return slow


def told_ms(model: nn.Module, spec: TrainSpec, *, lag_s: float = 0.0) -> float:
    """What the engine tells of this model, where computing the loss takes `lag_s`."""

    def loss(values: Tensor) -> Tensor:
        time.sleep(lag_s)
        return model(values).mean()

    step = build_step(model, loss, Update(spec, model, None), iter(partial(torch.ones, 4, WIDTH), None), 1)
    step()
    return measure_exposed_communication(step, without_communication(model), CPU, NUM_STEPS)


def of_parallelism(name: str) -> TrainSpec:
    return TrainSpec(num_steps=1, device="cpu", parallelism=name, num_devices=2)


def of_a_slow_network() -> dict[str, float]:
    spec = of_parallelism("fsdp2")
    model = wrap_model(Model(), spec, CPU)
    with SlowNetwork(DELAY_S / 10) as network:
        told = told_ms(model, spec)
    steps_s = torch.tensor(network.waited_s).view(-1, NUM_COLLECTIVES).sum(1)
    return {"told_ms": told, "clock_ms": 1e3 * steps_s.median().item()}


def of_a_slow_rank(parallelism: str, rank: int) -> dict[str, float]:
    spec = of_parallelism(parallelism)
    return {"told_ms": told_ms(wrap_model(Model(), spec, CPU), spec, lag_s=DELAY_S * rank)}


def of_weights_gathered_early(pause_s: float) -> dict[str, float]:
    """Only the second block's weights take longer to come; they are asked for before the first block computes."""
    spec = of_parallelism("fsdp2")
    model = wrap_model(Model(pause_s), spec, CPU)
    model.set_reshard_after_forward(False)
    first, second = model.blocks
    assert isinstance(second, FSDPModule)

    def gather_second() -> None:
        with SlowNetwork(DELAY_S):
            second.unshard(async_op=True)

    first.gather_next = gather_second
    return {"told_ms": told_ms(model, spec)}


def main(folder: Path, rank: int) -> None:
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    found = {
        "slow_network": of_a_slow_network(),
        "slow_rank_fsdp2": of_a_slow_rank("fsdp2", rank),
        "slow_rank_ddp": of_a_slow_rank("ddp", rank),
        "hidden": of_weights_gathered_early(pause_s=2 * DELAY_S),
        "not_hidden": of_weights_gathered_early(pause_s=0.0),
    }
    if rank == 0:
        (folder / "exposed.json").write_text(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
