"""From a setting to a step that can be taken: model, arithmetic, wrapping, compilation, update, batches."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from jobs.contract.errors import RefusedSpec
from jobs.contract.messages import gettext_noop as _
from jobs.contract.rules.table import refuse
from workers.engine.backends import apply_backends
from workers.engine.batches import open_batches
from workers.engine.blocks import checkpoint_activations
from workers.engine.checkpoint import Checkpoint, Keeper, read_checkpoint
from workers.engine.class_weights import build_criterion
from workers.engine.compile import compile_model
from workers.engine.data.dataset import Batch
from workers.engine.devices import building_on
from workers.engine.graph import build_graphed_step
from workers.engine.inference import build_forward_only, build_forward_step
from workers.engine.inventory import list_consumers
from workers.engine.models import build_model
from workers.engine.order import BatchOrder
from workers.engine.parallel import wrap_model
from workers.engine.precision import Arithmetic, Forward, apply_precision, build_scaler
from workers.engine.probe import observe, tell_what_did_nothing
from workers.engine.seeds import seed_everything, seed_rank
from workers.engine.setting import Setting
from workers.engine.step import LossFunction, Step, Weights, build_loss, build_step
from workers.engine.update import Update


@dataclass(frozen=True)
class Assembly:
    """All that a run's steps are made of. `wrapped` is the model as its parallelism trains it."""

    model: nn.Module
    wrapped: nn.Module
    forward: Forward  # of the bare model, in the run's precision
    compute_loss: LossFunction  # of the wrapped and compiled one
    update: Update | None  # None for inference
    batches: Iterator[Batch]
    order: BatchOrder
    weights: Weights | None  # of micro-batches, where they are not all of one size
    resumed: Checkpoint | None

    def make_step(self, compute_loss: LossFunction, batches: Iterator[Batch]) -> Step:
        """A step over other batches or with another loss, on the same model and update."""
        if self.update is None:
            return build_forward_step(compute_loss, batches)
        return build_step(self.wrapped, compute_loss, self.update, batches, self.order.grad_accum_steps, self.weights)

    @property
    def num_skipped_before(self) -> int:
        """Steps that the gradient scaler skipped before the run was resumed."""
        return self.resumed.num_skipped_steps if self.resumed else 0


def assemble(setting: Setting) -> Assembly:
    """Build everything; nothing has been trained yet, and a resumed run's checkpoint is read but not put back yet."""
    spec, dataset, device, summary = setting.spec, setting.dataset, setting.device, setting.summary
    resumed = read_checkpoint(setting.files.resume, spec, dataset.revision) if setting.files.resume else None
    model = _build_model(setting)
    apply_backends(spec)
    summary.fp32_arithmetic = apply_precision(spec.precision, device)
    arithmetic = Arithmetic.of(spec, device)
    model = arithmetic.prepare(model)
    order = BatchOrder.of(spec, len(dataset.train), setting.rank.rank)
    _require_enough_for_batch_norm(model, order)
    if spec.activation_checkpointing:
        checkpoint_activations(model, in_graph=spec.cuda_graph)
    wrapped = wrap_model(model, spec, device) if setting.is_training else model.eval()
    forward = arithmetic.build_forward(model)
    _look_at(model, forward, setting)
    compiled = arithmetic.build_forward(compile_model(wrapped, model, spec))
    update = Update(spec, model, build_scaler(spec, device)) if setting.is_training else None
    setting.report.inventory = partial(list_consumers, model, update.optimizer if update else None, dataset.train)
    num_done = resumed.step if resumed else 0
    return Assembly(
        model=model,
        wrapped=wrapped,
        forward=forward,
        compute_loss=_build_loss(compiled, setting),
        update=update,
        batches=open_batches(spec, dataset.train, order, device, num_done),
        order=order,
        weights=order.weights_from(num_done) if order.tail_size else None,
        resumed=resumed,
    )


def _build_model(setting: Setting) -> nn.Module:
    """On the CPU unless asked otherwise, so that a seed gives the same weights on every device."""
    spec, device = setting.spec, setting.device
    seed_everything(spec.seed)
    with building_on(device, build_on_device=spec.build_on_device):
        model = build_model(spec.model, setting.dataset, spec.dropout)
    model.to(device)
    seed_rank(spec.seed, setting.rank.rank)
    setting.summary.num_parameters = sum(parameter.numel() for parameter in model.parameters())
    return model


def _require_enough_for_batch_norm(model: nn.Module, order: BatchOrder) -> None:
    """One sample has no variance: torch refuses it in the middle of a run, at the end of the first epoch."""
    has_one = order.smallest_micro_batch == 1 < order.micro_batch_size
    if has_one and any(isinstance(module, _BatchNorm) for module in model.modules()):
        message = _("The epoch's last micro-batch would be one sample, of which a batch norm can learn nothing.")
        raise RefusedSpec([refuse("drop_last", message)])


def _look_at(model: nn.Module, forward: Forward, setting: Setting) -> None:
    """Note what really computes, before compilation hides it."""
    seen = observe(model, forward, setting.dataset.train, setting.device)
    setting.summary.observed_dtype, setting.summary.attention_kernel = seen.dtype, seen.attention_kernel
    tell_what_did_nothing(setting.spec, model, seen, setting.report)
    model.train(setting.is_training)


def _build_loss(compiled: Forward, setting: Setting) -> LossFunction:
    if not setting.is_training:
        return build_forward_only(compiled, setting.device)
    return build_loss(compiled, build_criterion(setting.spec.class_weights, setting.dataset, setting.device))


def build_timed_step(setting: Setting, parts: Assembly) -> Step:
    """The step that the run is timed by: recorded as a CUDA graph where that was asked for."""
    if parts.update and setting.spec.cuda_graph:
        about = (parts.wrapped, parts.compute_loss, parts.update, parts.batches)
        return build_graphed_step(setting.spec, *about, setting.summary)
    return parts.make_step(parts.compute_loss, parts.batches)


def build_keeper(setting: Setting, parts: Assembly) -> Keeper | None:
    """What writes checkpoints, where the spec asks for them and there is a folder to write to."""
    spec, artifacts = setting.spec, setting.files.artifacts
    if not (parts.update and spec.checkpoint_every_steps and artifacts):
        return None
    about = (spec, setting.dataset.revision, artifacts, parts.model, parts.update)
    return Keeper(*about, setting.rank, setting.exchange, setting.report, parts.num_skipped_before)
