"""Tables that come with scikit-learn, read from the files in its wheel: diabetes, breast-cancer and wine.

One row in five is for evaluation, by a fixed permutation. Columns are brought to mean 0 and standard deviation 1 by
the training split's figures, and so is a target that is a value: a loss of 1 is what predicting the mean would give.
"""

import hashlib

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jobs.contract.catalog import DataKind, Target
from workers.engine.data.dataset import Dataset, Sizes, Split
from workers.engine.data.sklearn_files import find_file, shuffle

_EVAL_SHARE = 5  # one row in this many
Table = NDArray[np.float64]


def load_diabetes(_sizes: Sizes) -> Dataset:
    """10 measurements of 442 patients; the target is a measure of the disease's progression a year later."""
    features = np.loadtxt(find_file("diabetes", "diabetes_data_raw.csv.gz"))
    values = np.loadtxt(find_file("diabetes", "diabetes_target.csv.gz"))
    return _as_dataset(np.column_stack([features, values]), Target.VALUE, num_outputs=1)


def load_breast_cancer(_sizes: Sizes) -> Dataset:
    """30 measurements of 569 tumours; class 0 is malignant, 1 is benign."""
    table = np.loadtxt(find_file("breast-cancer", "breast_cancer.csv"), delimiter=",", skiprows=1)
    return _as_dataset(table, Target.CLASS, num_outputs=2)


def load_wine(_sizes: Sizes) -> Dataset:
    """13 measurements of 178 wines; the class is one of three growers."""
    table = np.loadtxt(find_file("wine", "wine_data.csv"), delimiter=",", skiprows=1)
    return _as_dataset(table, Target.CLASS, num_outputs=3)


def _as_dataset(table: Table, target: Target, num_outputs: int) -> Dataset:
    """A data set of a table (rows, features + 1) whose last column is the target."""
    table = shuffle(table)
    num_train = len(table) - len(table) // _EVAL_SHARE
    scaled = _standardize(table, num_train)
    features = torch.from_numpy(scaled[:, :-1]).float()
    labels = _labels(table, scaled, target)
    return Dataset(
        kind=DataKind.VECTORS,
        target=target,
        revision=hashlib.sha256(table.tobytes()).hexdigest()[:16],
        sample_shape=(features.shape[1],),
        num_classes=num_outputs,
        train=Split(features[:num_train], labels[:num_train]),
        evaluation=Split(features[num_train:], labels[num_train:]),
    )


def _standardize(table: Table, num_train: int) -> Table:
    train = table[:num_train]
    scaled: Table = (table - train.mean(axis=0)) / train.std(axis=0)
    return scaled


def _labels(table: Table, scaled: Table, target: Target) -> Tensor:
    if target is Target.VALUE:
        return torch.from_numpy(scaled[:, -1]).float()
    return torch.from_numpy(table[:, -1]).long()
