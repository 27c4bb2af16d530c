"""Data sets of the Hugging Face hub that are registered by name, each at a pinned revision.

They are downloaded when a job first names one, before anything is timed, and read from the hub's cache from then on.
The package `datasets` is optional (requirements-hub.txt). Listing imports neither it nor torch.
"""

import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from jobs.contract.catalog import DataKind, DatasetInfo, Target

_OFFLINE_VARIABLES = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE")
_TRUE = {"1", "ON", "YES", "TRUE"}


@dataclass(frozen=True)
class HubDataset:
    """Where a data set is and which of its columns are used; `labels` is empty for running text."""

    info: DatasetInfo
    repository: str
    configuration: str
    revision: str  # a commit of the repository
    inputs: str
    labels: str
    evaluation_split: str


HUB = {
    "cifar10": HubDataset(
        DatasetInfo(
            name="cifar10",
            description="60,000 photographs of 32x32 pixels in 10 classes (Hugging Face hub)",
            gives=DataKind.IMAGES,
            num_train_samples=50_000,
            num_classes=10,
            image_size=32,
        ),
        *("uoft-cs/cifar10", "plain_text", "0b2714987fa478483af9968de7c934580d0bb9a2"),
        *("img", "label", "test"),
    ),
    "tiny-imagenet": HubDataset(
        DatasetInfo(
            name="tiny-imagenet",
            description="A part of ImageNet: 110,000 photographs of 64x64 pixels in 200 classes (Hugging Face hub)",
            gives=DataKind.IMAGES,
            num_train_samples=100_000,
            num_classes=200,
            image_size=64,
        ),
        *("zh-plus/tiny-imagenet", "default", "5a77092c28e51558c5586e9c5eb71a7e17a5e43f"),
        *("image", "label", "valid"),
    ),
    "wikitext-2": HubDataset(
        DatasetInfo(
            name="wikitext-2",
            description="Articles of Wikipedia, 11 MB, as bytes (Hugging Face hub)",
            gives=DataKind.TOKENS,
            target=Target.NEXT_TOKEN,
            num_classes=256,
            sequence_length=128,
        ),
        *("Salesforce/wikitext", "wikitext-2-raw-v1", "b08601e04326c79dfdd32d625aee71d232d685c3"),
        *("text", "", "validation"),
    ),
    "glue-sst2": HubDataset(
        DatasetInfo(
            name="glue-sst2",
            description="68,000 sentences of film reviews, for or against, as bytes (GLUE, Hugging Face hub)",
            gives=DataKind.SEQUENCES,
            num_train_samples=67_349,
            num_classes=2,
            sequence_length=128,
            is_padded=True,
        ),
        *("nyu-mll/glue", "sst2", "bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c"),
        *("sentence", "label", "validation"),
    ),
}


def list_hub() -> list[DatasetInfo]:
    """All of them, each with the reason why this host cannot load it, if there is one."""
    return [source.info.model_copy(update={"unavailable": _why_not(source)}) for source in HUB.values()]


def _why_not(source: HubDataset) -> str:
    name = source.info.name
    if find_spec("datasets") is None:
        return f"{name} needs the package datasets on the worker: pip install -r requirements-hub.txt."
    if is_offline() and not _is_cached(source):
        return f"{name} is not in this worker's cache, and the worker is told to stay offline (HF_HUB_OFFLINE)."
    return ""


def is_offline() -> bool:
    """Whether the hub's libraries were told not to use the network."""
    return any(os.environ.get(variable, "").upper() in _TRUE for variable in _OFFLINE_VARIABLES)


def _is_cached(source: HubDataset) -> bool:
    if Path(source.repository).is_absolute():
        return Path(source.repository).exists()
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache/huggingface")
    cache = Path(os.environ.get("HF_DATASETS_CACHE") or home / "datasets")
    return any(cache.glob(f"{source.repository.replace('/', '___')}/{source.configuration}/*/{source.revision}"))
