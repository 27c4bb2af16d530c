"""`describe`: everything that a form or a worker needs to know about this engine, as plain values."""

from importlib import import_module
from typing import Any

from jobs.contract.rules import RULES
from jobs.contract.spec import TrainSpec
from workers.engine.catalog import read_catalog
from workers.engine.facts import read_host_facts


def describe(*, with_ceilings: bool = False) -> dict[str, Any]:
    """Host facts, catalog, options (JSON schema of `TrainSpec`) and rules, ready for JSON.

    Ceilings cost about a second per device, and mean something only while the devices are idle.
    """
    facts = read_host_facts()
    if with_ceilings:
        measure = import_module("workers.engine.ceilings").measure_ceilings  # torch, which facts alone do not need
        devices = [device.model_copy(update={"ceilings": measure(device)}) for device in facts.devices]
        facts = facts.model_copy(update={"devices": devices})
    return {
        "facts": facts.model_dump(mode="json"),
        "catalog": read_catalog().model_dump(mode="json"),
        "options": TrainSpec.model_json_schema(),
        "rules": [{"name": rule.__name__, "docstring": rule.__doc__} for rule in RULES],
    }
