"""The loop that one would write by hand: the yardstick.

It logs as much as the engine does: each step's loss and time, as JSON lines on standard output, about as often.
Nothing of the engine is in it but the model and the data, and from the engine's documentation how a seed orders them,
so that its losses must be the engine's.
"""

import json
import sys
import time
from typing import Any

import torch
from torch.nn import functional

from workers.engine.data import load_dataset
from workers.engine.models import build_model

READ_EVERY_S = 0.25  # the engine's windows are as long


def train(spec: dict[str, Any]) -> None:
    """Train without end."""
    torch.set_num_threads(spec["num_threads"])
    torch.manual_seed(spec["seed"])
    dataset = load_dataset(spec["dataset"])
    model = build_model(spec["model"], dataset)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    samples, labels = dataset.train.samples, dataset.train.labels
    size = spec["micro_batch_size"]
    losses, seconds, num_read = [], [], 0
    began_s = read_s = time.perf_counter()
    for epoch in range(spec["num_steps"]):
        generator = torch.Generator().manual_seed((spec["seed"] << 32) + epoch)
        order = torch.randperm(len(samples), generator=generator)
        for start in range(0, len(samples) - size + 1, size):
            indices = order[start : start + size]
            if labels is not None:
                inputs, targets = samples[indices], labels[indices]
            else:
                tokens = samples[indices].long()
                inputs, targets = tokens[:, :-1], tokens[:, 1:]
            optimizer.zero_grad()
            outputs = model(inputs)
            if labels is None:
                outputs, targets = outputs.flatten(0, 1), targets.flatten()
            loss = functional.cross_entropy(outputs, targets)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
            now_s = time.perf_counter()
            seconds.append(now_s - began_s)
            if now_s - read_s > READ_EVERY_S:
                steps = list(range(num_read + 1, num_read + len(losses) + 1))
                series = {"train_loss": torch.stack(losses).tolist()}
                sys.stdout.write(
                    json.dumps({"type": "points", "steps": steps, "wall_s": seconds, "series": series}) + "\n"
                )
                sys.stdout.flush()
                num_read += len(losses)
                losses, seconds, read_s = [], [], now_s
