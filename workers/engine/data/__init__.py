"""Data sets by name. A file is imported only when a job names its data set"""

from collections.abc import Callable
from typing import cast

from jobs.contract.catalog import DataKind
from workers.engine import folders
from workers.engine.data.dataset import Dataset, Sizes
from workers.engine.hub import HUB
from workers.engine.plugins import find_plugins, import_function

# name -> (module under this package, function that loads the data set)
LOADERS = {
    "stdlib-text": ("stdlib_text", "load_stdlib_text"),
    "digits": ("digits", "load_digits"),
    "diabetes": ("tables", "load_diabetes"),
    "breast-cancer": ("tables", "load_breast_cancer"),
    "wine": ("tables", "load_wine"),
    "synthetic-images": ("synthetic", "make_images"),
    "synthetic-tokens": ("synthetic", "make_tokens"),
    "synthetic-sequences": ("synthetic", "make_sequences"),
}


def load_dataset(name: str, sizes: Sizes = Sizes()) -> Dataset:  # noqa: B008 - frozen
    """The data set in host memory, at the sizes asked for; raises `DataMissing` where its files are not there."""
    dataset = _find_loader(name)(sizes)
    return dataset.at_image_size(sizes.image_size) if dataset.kind is DataKind.IMAGES else dataset


def _find_loader(name: str) -> Callable[[Sizes], Dataset]:
    if name in LOADERS:
        module, function = LOADERS[name]
        return cast(Callable[[Sizes], Dataset], import_function(f"{__name__}.{module}:{function}"))
    if name.startswith(folders.PREFIX):
        load_folder = import_function(f"{__name__}.folder_files:load_folder")
        return lambda sizes: cast(Dataset, load_folder(name.removeprefix(folders.PREFIX), sizes))
    if name in HUB:
        load_from_hub = import_function(f"{__name__}.hub_files:load_from_hub")
        return lambda sizes: cast(Dataset, load_from_hub(name, sizes))
    return cast(Callable[[Sizes], Dataset], import_function(find_plugins().datasets[name].loader))
