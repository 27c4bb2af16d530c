"""The data files inside scikit-learn's wheel. Importing sklearn.datasets takes most of a second; a file, hundredths."""

from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from jobs.contract.errors import DataMissing

_SPLIT_SEED = 0  # RandomState's stream is frozen by NumPy's policy, so the split is the same everywhere
Rows = TypeVar("Rows", bound=NDArray[np.generic])


def find_file(dataset: str, file: str) -> Path:
    """The file that `dataset` is read from; raises `DataMissing` where scikit-learn is not installed."""
    spec = find_spec("sklearn")
    path = Path(spec.origin).parent / "datasets/data" / file if spec and spec.origin else None
    if path is None or not path.exists():
        raise DataMissing(f"The data set {dataset} comes with scikit-learn, which is not installed here. Install it.")
    return path


def shuffle(table: Rows) -> Rows:
    """The table's rows in a fixed order that has nothing to do with the file's."""
    shuffled: Rows = table[np.random.RandomState(_SPLIT_SEED).permutation(len(table))]  # type: ignore[assignment]
    return shuffled
