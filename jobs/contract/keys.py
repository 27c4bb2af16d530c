"""The keys of runs: what work was done and on what ground, which must agree to be compared, and how it was done."""

import hashlib
import json
from collections.abc import Mapping
from functools import cache
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


def configuration(spec: Mapping[str, Any]) -> dict[str, Any]:
    """How the work was done: every configuration field of a resolved spec in plain values.

    A spec stored before a field was added counts with that field's default.
    """
    return {name: spec.get(name, default) for name, default in _default_configuration().items()}


def configuration_key(spec: Mapping[str, Any]) -> str:
    """A short hash of what differs from the defaults, so that a new field leaves the keys of old runs as they are."""
    defaults = _default_configuration()
    return _key({name: value for name, value in configuration(spec).items() if value != defaults[name]})


@cache
def _default_configuration() -> dict[str, Any]:
    defaults = TrainSpec().model_dump(mode="json")
    return {name: defaults[name] for name in fields_with_role(Role.CONFIGURATION)}


def _key(values: Mapping[str, Any]) -> str:
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
