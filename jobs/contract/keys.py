"""The two keys that say which runs may be compared: the same work, on the same ground."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from jobs.contract.options import Role
from jobs.contract.spec import TrainSpec, fields_with_role

# A run's length enters as resolved steps, so that the same work asked for in epochs has the same key.
_LENGTH_FIELDS = {"num_steps", "num_epochs"}


def workload(resolved: TrainSpec, dataset_revision: str) -> dict[str, Any]:
    """What work is done, in plain values; `resolved` must carry the number of steps."""
    if resolved.num_steps is None:
        raise ValueError("the number of steps must be resolved before a workload can be named")
    dumped = resolved.model_dump(mode="json")
    work = {name: dumped[name] for name in fields_with_role(Role.WORKLOAD) if name not in _LENGTH_FIELDS}
    return work | {
        "num_steps": resolved.num_steps,
        "global_batch_size": resolved.global_batch_size,
        "dataset_revision": dataset_revision,
    }


def workload_key(resolved: TrainSpec, dataset_revision: str) -> str:
    """A short hash of `workload`; equal keys mean the same work."""
    return _key(workload(resolved, dataset_revision))


def environment_key(device_name: str, versions: Mapping[str, str]) -> str:
    """A short hash of what a run was done on: device model, driver, torch and engine versions."""
    names = ("driver", "torch", "engine")
    return _key({"device_name": device_name} | {name: versions.get(name, "") for name in names})


def _key(values: Mapping[str, Any]) -> str:
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
