"""What this host's engine can be asked for by name: built in, a folder's data, from the hub, a team's packages.

Imports no torch: the launcher's side and `describe` read it.
"""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from jobs.contract.catalog import BUILT_IN, Catalog, DatasetInfo, ModelInfo
from workers.engine.folders import list_folders
from workers.engine.hub import list_hub
from workers.engine.plugins import find_plugins

Info = TypeVar("Info", ModelInfo, DatasetInfo)


def read_catalog() -> Catalog:
    """The catalog of this host; what cannot be offered is told in `problems`."""
    plugins, folders = find_plugins(), list_folders()
    problems = [*plugins.problems, *folders.problems]
    added_models = [plugin.info for plugin in plugins.models.values()]
    added_datasets = [plugin.info for plugin in plugins.datasets.values()]
    return Catalog(
        models=_joined(BUILT_IN.models, added_models, problems),
        datasets=_joined([*BUILT_IN.datasets, *list_hub(), *folders.infos], added_datasets, problems),
        problems=problems,
    )


def _joined(known: Sequence[Info], added: Iterable[Info], problems: list[str]) -> list[Info]:
    """Both, except what would take a name that is taken."""
    names = {info.name for info in known}
    joined = list(known)
    for info in added:
        if info.name in names:
            problems.append(f"The plug-in {info.name} has a name that is built in and is left out.")
        else:
            joined.append(info)
    return joined
