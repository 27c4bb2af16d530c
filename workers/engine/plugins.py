"""Models and data sets of a team's own packages, found by their entry points.

A package that is broken must not take the rest of the catalog with it: its error becomes a sentence.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar, cast

from jobs.contract.plugins import DatasetPlugin, ModelPlugin

MODEL_GROUP = "pitwall.models"
DATASET_GROUP = "pitwall.datasets"
Plugin = TypeVar("Plugin", ModelPlugin, DatasetPlugin)


@dataclass(frozen=True)
class Plugins:
    """The plug-ins by name, and a sentence about each one that cannot be used."""

    models: dict[str, ModelPlugin] = field(default_factory=dict)
    datasets: dict[str, DatasetPlugin] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


@cache
def find_plugins() -> Plugins:
    """All plug-ins that are installed where this process imports from."""
    found = Plugins()
    for entry in entry_points(group=MODEL_GROUP):
        _add(found.models, entry, ModelPlugin, found.problems)
    for entry in entry_points(group=DATASET_GROUP):
        _add(found.datasets, entry, DatasetPlugin, found.problems)
    return found


def _add(known: dict[str, Plugin], entry: EntryPoint, kind: type[Plugin], problems: list[str]) -> None:
    package = entry.dist.name if entry.dist else "?"
    source = f"The plug-in {entry.name} of the package {package}"
    try:
        plugin = entry.load()
    except Exception as error:  # foreign code, which may raise anything
        problems.append(f"{source} cannot be imported ({type(error).__name__}: {error}).")
        return
    if not isinstance(plugin, kind):
        problems.append(f"{source} is no {kind.__name__}; its entry point must lead to one.")
    elif plugin.info.name != entry.name:
        problems.append(f"{source} calls itself {plugin.info.name}; both names must be the same.")
    elif entry.name in known:
        problems.append(f"{source} has the name of another plug-in and is left out.")
    else:
        known[entry.name] = plugin


def import_function(reference: str) -> Callable[..., Any]:
    """What `module:function` names."""
    module, _, function = reference.partition(":")
    return cast(Callable[..., Any], getattr(import_module(module), function))
