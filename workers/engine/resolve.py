"""What a spec leaves open, decided on this host and for this data set."""

from jobs.contract.catalog import Catalog, DataKind
from jobs.contract.errors import InvalidSpec
from jobs.contract.facts import HostFacts
from jobs.contract.lengths import length_in_steps
from jobs.contract.rules import resolve_device_kind
from jobs.contract.spec import DeviceKind, Task, TrainSpec, parse_spec
from workers.engine.checks import require_allowed
from workers.engine.data.dataset import Dataset
from workers.engine.optimizers import decide_weight_decay
from workers.engine.threads import default_num_threads


def resolve(spec: TrainSpec, facts: HostFacts, dataset: Dataset, catalog: Catalog) -> TrainSpec:
    """The spec with its device, threads, sizes and number of steps decided; itself a spec that can be run.

    Raises `RefusedSpec` where the data set, now that it is loaded, does not suit: too few samples for one global batch,
    or a number of classes that the precision cannot take.
    """
    catalog = as_loaded(catalog, spec.dataset, dataset)
    require_allowed(spec, facts, catalog)
    device = DeviceKind(resolve_device_kind(spec, facts))
    num_threads = spec.num_threads or default_num_threads(facts.num_cpu_cores, spec.num_local_ranks)
    decided: dict[str, object] = {
        "device": device,
        "num_steps": length_in_steps(spec, len(dataset.train)),
        "num_epochs": None,
        "num_threads": num_threads,
    }
    if spec.task is Task.TRAIN:
        decided["weight_decay"] = decide_weight_decay(spec)
    resolved = spec.model_copy(update=decided | _sizes_of(dataset))
    require_allowed(resolved, facts, catalog)
    return resolved


def _sizes_of(dataset: Dataset) -> dict[str, int]:
    """The sizes in the data, so that leaving one open and giving it are one workload."""
    if dataset.kind is DataKind.IMAGES:
        _channels, height, width = dataset.sample_shape
        sizes = {"image_size": height} if height == width else {}
    else:
        sizes = {} if dataset.kind is DataKind.VECTORS else {"sequence_length": dataset.sample_shape[0]}
    return {name: size for name, size in sizes.items() if _can_be_asked_for(name, size)}


def _can_be_asked_for(name: str, size: int) -> bool:
    """Whether a spec takes this size: a team's own data may be smaller than any that can be chosen."""
    try:
        parse_spec({name: size})
    except InvalidSpec:
        return False
    return True


def as_loaded(catalog: Catalog, name: str, dataset: Dataset) -> Catalog:
    """The catalog with what only loading the data set could tell, or what it told wrongly."""
    seen = {
        "num_train_samples": len(dataset.train),
        "num_classes": dataset.num_classes,
        "is_padded": dataset.padding is not None,
    }
    infos = [info.model_copy(update=seen) if info.name == name else info for info in catalog.datasets]
    return catalog.model_copy(update={"datasets": infos})
