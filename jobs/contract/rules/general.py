"""Rules about what a job is and where it runs: model, data, length, batch, devices, loader."""

from collections.abc import Iterator

from jobs.contract.findings import Finding
from jobs.contract.messages import gettext_noop as _
from jobs.contract.rules.table import Situation, refuse, rule, warn
from jobs.contract.spec import CompileMode, DataLoading, DeviceKind, Parallelism


@rule
def known_model_and_dataset(at: Situation) -> Iterator[Finding]:
    """Models and data sets are names in the catalog, and the two must suit each other."""
    model, dataset = at.catalog.model(at.spec.model), at.catalog.dataset(at.spec.dataset)
    if model is None:
        names = ", ".join(info.name for info in at.catalog.models)
        yield refuse(
            "model", _("There is no model “%(name)s”. Choose one of %(names)s."), name=at.spec.model, names=names
        )
    if dataset is None:
        names = ", ".join(info.name for info in at.catalog.datasets)
        yield refuse(
            "dataset", _("There is no data set “%(name)s”. Choose one of %(names)s."), name=at.spec.dataset, names=names
        )
    if model and dataset and dataset.gives not in model.takes:
        names = ", ".join(info.name for info in at.catalog.datasets_for(model))
        yield refuse(
            "dataset",
            _("The model %(model)s cannot train on %(dataset)s. Choose %(names)s."),
            model=model.name,
            dataset=dataset.name,
            names=names,
        )


@rule
def one_length(at: Situation) -> Iterator[Finding]:
    """A run's length is given once: as steps or as epochs."""
    if at.spec.num_steps is None and at.spec.num_epochs is None:
        yield refuse("num_steps", _("Say how long to train: give either steps or epochs."))
    if at.spec.num_steps is not None and at.spec.num_epochs is not None:
        yield refuse("num_epochs", _("Give either steps or epochs, not both."))


@rule
def batch_fits_dataset(at: Situation) -> Iterator[Finding]:
    """At least one whole global batch must come out of the training split."""
    dataset = at.catalog.dataset(at.spec.dataset)
    if dataset and dataset.num_train_samples and at.spec.global_batch_size > dataset.num_train_samples:
        yield refuse(
            "micro_batch_size",
            _("The global batch of %(batch)s is larger than the training split of %(dataset)s (%(samples)s samples)."),
            batch=at.spec.global_batch_size,
            dataset=dataset.name,
            samples=dataset.num_train_samples,
        )


@rule
def devices_and_parallelism(at: Situation) -> Iterator[Finding]:
    """Several devices need a way to share the work; one device only measures that way's overhead."""
    spec = at.spec
    if spec.parallelism is Parallelism.NONE and spec.num_devices > 1:
        yield refuse("num_devices", _("Without parallelism a job uses one device. Choose ddp or set devices to 1."))
    if spec.num_nodes > 1 and not spec.uses_ranks:
        yield refuse("num_nodes", _("Several nodes share the work as ranks. Choose ddp or fsdp2, or set nodes to 1."))
    if spec.uses_ranks and spec.num_ranks == 1:
        yield warn("parallelism", _("%(name)s on one device only measures its overhead."), name=spec.parallelism.value)


@rule
def device_present(at: Situation) -> Iterator[Finding]:
    """The host must have the devices asked for, and a PyTorch with kernels for them."""
    if at.facts is None:
        return
    if at.spec.device is DeviceKind.CUDA and not at.devices:
        yield refuse("device", _("This worker has no CUDA GPU. Choose cpu or auto."))
    elif at.device_kind == "cuda" and at.spec.num_devices > len(at.devices):
        yield refuse(
            "num_devices",
            _("The job asks for %(asked)s GPUs; this worker has %(present)s."),
            asked=at.spec.num_devices,
            present=len(at.devices),
        )
    for device in at.devices:
        if not device.has_kernels:
            yield refuse("device", _("The installed PyTorch has no kernels for %(name)s."), name=device.name)
    if at.device_kind == "cpu" and at.spec.num_devices > at.facts.num_cpu_cores:
        yield warn(
            "num_devices",
            _("%(asked)s processes share %(present)s CPU cores; they will slow each other down."),
            asked=at.spec.num_devices,
            present=at.facts.num_cpu_cores,
        )


@rule
def threads_fit_cores(at: Situation) -> Iterator[Finding]:
    """More threads than cores wait for each other at every operation: steps become many times slower."""
    if at.facts is None or at.spec.num_threads is None or at.device_kind != "cpu":
        return
    asked, cores = at.spec.num_threads * at.spec.num_local_ranks, at.facts.num_cpu_cores
    if asked >= cores > 1:
        yield warn(
            "num_threads",
            _("%(asked)s threads leave none of %(cores)s cores free; anything else on the host slows the steps a lot."),
            asked=asked,
            cores=cores,
        )


@rule
def compiler_present(at: Situation) -> Iterator[Finding]:
    """torch.compile generates code that a C++ compiler on the worker must build."""
    if at.spec.compile_mode is not CompileMode.OFF and at.facts and not at.facts.has_compiler:
        yield refuse(
            "compile_mode", _("torch.compile needs a C++ compiler, and this worker has none. Install g++ there.")
        )


@rule
def loader_options(at: Situation) -> Iterator[Finding]:
    """The loader's options mean something only where there is a loader, and some only with workers or a GPU."""
    spec = at.spec
    asked = {
        "num_workers": spec.num_workers > 0,
        "prefetch_factor": spec.prefetch_factor is not None,
        "persistent_workers": spec.persistent_workers,
        "pin_memory": spec.pin_memory,
        "non_blocking": spec.non_blocking,
    }
    if spec.data_loading is DataLoading.ON_DEVICE:
        for field in (name for name, used in asked.items() if used):
            yield refuse(field, _("The data set lives on the device; choose the dataloader to use this option."))
        return
    if spec.num_workers == 0:
        for field in (name for name in ("prefetch_factor", "persistent_workers") if asked[name]):
            yield refuse(field, _("This option needs at least one loader worker."))
    if spec.pin_memory and at.device_kind == "cpu":
        yield refuse("pin_memory", _("Pinned memory speeds up copies to a GPU; this job runs on the CPU."))
    if spec.non_blocking and not spec.pin_memory:
        yield refuse("non_blocking", _("Non-blocking copies need pinned memory."))
