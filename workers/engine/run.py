"""One training run, from top to bottom; what each part does is told in its own room."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch._dynamo  # the first optimizer step would import it, and count a second of imports as training

from jobs.contract.catalog import DataKind
from jobs.contract.events import Started
from jobs.contract.facts import HostFacts
from jobs.contract.rules.acceleration import graph_warmup_steps
from jobs.contract.spec import DeviceKind, TrainSpec
from workers.engine.apart import TrainedStep, measure_flops, measure_parts, warn_of_needless_checkpointing
from workers.engine.assembly import Assembly, assemble, build_keeper, build_timed_step
from workers.engine.catalog import read_catalog
from workers.engine.checkpoint import warn_of_what_begins_anew
from workers.engine.checks import require_allowed
from workers.engine.compile import CompileCounts, compiled_modules_set_aside
from workers.engine.data import load_dataset
from workers.engine.data.dataset import Dataset, Sizes
from workers.engine.devices import claim_gpu, device_of
from workers.engine.environment import environment_of
from workers.engine.evaluate import evaluate
from workers.engine.facts import hardware_of, read_host_facts, versions_of
from workers.engine.files import RunFiles
from workers.engine.loop import Loop
from workers.engine.memory import read_rss, reset_peaks
from workers.engine.parallel import Exchange, Rank, process_group, without_communication
from workers.engine.profiler import profile_steps, take_along
from workers.engine.report import Report
from workers.engine.resolve import as_loaded, resolve
from workers.engine.resources import Resources, store_resources
from workers.engine.setting import Setting
from workers.engine.step import Step
from workers.engine.telemetry import Telemetry, open_gpus


def run(
    asked: TrainSpec,
    report: Report,
    rank: Rank,
    started_s: float,
    files: RunFiles = RunFiles(),  # noqa: B008 - frozen
) -> None:
    """Check, load, resolve and train; `started_s` is the perf_counter reading at which this process's imports began."""
    report.summary.import_s = time.perf_counter() - started_s
    report.enter("building")
    build_began_s = time.perf_counter()
    os.environ.update(environment_of(asked))  # before CUDA starts
    claim_gpu(asked.device, rank)
    facts = read_host_facts(with_gpus=asked.device is not DeviceKind.CPU)
    catalog = read_catalog()
    require_allowed(asked, facts, catalog)  # before anything is loaded
    rss_before_build_bytes = read_rss()
    dataset = load_dataset(asked.dataset, Sizes.of(asked))
    catalog = as_loaded(catalog, asked.dataset, dataset)
    warnings = require_allowed(asked, facts, catalog)  # some rules wait for the number of samples
    spec = resolve(asked, facts, dataset, catalog)
    report.summary.device_name = _device_name(spec, facts, rank)
    report.emit(_started(spec, facts, dataset, report.summary.device_name))
    for finding in warnings:
        report.warn(finding)
    assert spec.num_threads is not None  # noqa: S101 - resolved
    torch.set_num_threads(spec.num_threads)
    device = device_of(spec.device, rank)
    with process_group(spec, device):
        exchange = Exchange(rank, device)
        (total_rss,) = exchange.add_up(rss_before_build_bytes)
        report.summary.rss_before_build_bytes = round(total_rss)
        _train(Setting(spec, dataset, device, rank, exchange, report, files), build_began_s)


def _train(setting: Setting, build_began_s: float) -> None:
    """The story of one run. A function of its own, so that the model is gone before its process group is."""
    parts = assemble(setting)
    step = build_timed_step(setting, parts)
    keeper = build_keeper(setting, parts)
    if parts.update and parts.resumed:  # the two go together: a checkpoint names its task
        parts.resumed.restore(parts.model, parts.update, setting.rank)
        warn_of_what_begins_anew(setting.spec, setting.report)
    about = (setting.spec, setting.exchange, setting.report, setting.devices)
    loop = Loop(step, *about, parts.order, has_loss=setting.has_loss, keeper=keeper, resumed=parts.resumed)
    setting.summary.build_s = time.perf_counter() - build_began_s
    _take_steps(loop, setting)
    if parts.update and parts.update.num_skipped_steps is not None:
        setting.summary.num_skipped_steps = parts.num_skipped_before + parts.update.num_skipped_steps
    if not setting.dataset.is_synthetic:  # where a loss would look like a result
        _evaluate(setting, parts)
    _measure_apart(setting, parts, step)
    setting.report.inventory = None  # it holds the model, which must go before the process group does


def _take_steps(loop: Loop, setting: Setting) -> None:
    """First step, warm-up and steady part, each timed apart, with the device watched meanwhile."""
    spec, report, devices = setting.spec, setting.report, setting.devices
    if not loop.num_left:  # the run that this one goes on from took them all
        loop.sum_up_losses()
        return
    with (
        torch.inference_mode(not setting.is_training),
        Telemetry(report, open_gpus(devices, report), loop.started_s) as telemetry,
        _recorded(setting, telemetry) as compile_counts,
    ):
        report.enter("first_step")
        loop.run_first_step()
        compile_counts.end_first_step()
        report.enter("training")
        loop.run_warmup(at_least=graph_warmup_steps(spec.parallelism) if spec.cuda_graph else 0)
        if loop.num_left:  # the peaks of a run that has no steady part are those of what it has
            reset_peaks(devices)
        telemetry.begin_steady()
        loop.run_steady()


@contextmanager
def _recorded(setting: Setting, telemetry: Telemetry) -> Iterator[CompileCounts]:
    """Record what the steps in the block took, also of a run that ends in it, if only this process knows.

    Ranks tell each other; of one that ends early the others would wait for words that never come.
    """
    counts = CompileCounts(setting.spec)
    try:
        yield counts
    except BaseException:
        if setting.rank.num_ranks == 1:
            _record(setting, counts, [Resources.taken(setting.devices, telemetry)])
        raise
    _record(setting, counts, setting.exchange.gather(Resources.taken(setting.devices, telemetry)))


def _record(setting: Setting, counts: CompileCounts, taken: list[Resources]) -> None:
    summary = setting.summary
    store_resources(summary, taken)
    counts.store(setting.report)
    if setting.dataset.kind in (DataKind.TOKENS, DataKind.SEQUENCES) and summary.samples_per_s is not None:
        summary.tokens_per_s = summary.samples_per_s * setting.dataset.sample_shape[0]


def _evaluate(setting: Setting, parts: Assembly) -> None:
    setting.report.enter("evaluating")
    began_s, summary = time.perf_counter(), setting.summary
    spec = setting.spec
    samples_per_device = (
        spec.micro_batch_size * spec.num_local_ranks // spec.num_devices
    )  # data_parallel splits a batch
    ground = (setting.device, setting.rank, setting.exchange)
    with compiled_modules_set_aside():
        evaluation = evaluate(parts.model, setting.dataset, parts.forward, *ground, samples_per_device)
    summary.final_eval_loss, summary.eval_accuracy = evaluation.loss, evaluation.accuracy
    summary.eval_s = time.perf_counter() - began_s


def _measure_apart(setting: Setting, parts: Assembly, step: Step) -> None:
    """Whatever would disturb the timed steps. Results stand by now, so the weights may move on."""
    spec, device, report, artifacts = setting.spec, setting.device, setting.report, setting.files.artifacts
    report.enter("measuring")
    parts.model.train(setting.is_training)
    optimizer = parts.update.optimizer if parts.update else None
    alone = without_communication(parts.wrapped)
    trained = TrainedStep(parts.make_step, parts.compute_loss, parts.batches, optimizer, alone)
    with torch.inference_mode(not setting.is_training):
        if not spec.cuda_graph:  # of a recorded step only the whole exists
            measure_parts(trained, spec, device, report)
        if spec.profile_steps and artifacts and setting.rank.rank == 0:
            profile_steps(step, spec.profile_steps, device, artifacts, report)
        elif spec.profile_steps:
            take_along(step, spec.profile_steps)
    measure_flops(spec, setting.dataset, report)
    if setting.rank.rank == 0:
        warn_of_needless_checkpointing(spec, setting.dataset, device, report)


def _device_name(spec: TrainSpec, facts: HostFacts, rank: Rank) -> str:
    devices = facts.devices_of(spec.device)
    return devices[rank.local_rank % len(devices)].name  # all ranks share the one CPU


def _started(spec: TrainSpec, facts: HostFacts, dataset: Dataset, device_name: str) -> Started:
    return Started(
        pid=os.getpid(),
        spec=spec,
        device_name=device_name,
        dataset_revision=dataset.revision,
        num_train_samples=len(dataset.train),
        versions=versions_of(facts),
        hardware=hardware_of(facts, spec.device.value, spec.num_devices, spec.num_nodes),
    )
