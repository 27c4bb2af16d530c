"""Rules about how weights are updated."""

from collections.abc import Iterator

from jobs.contract.catalog import Target
from jobs.contract.choices import ClassWeights, OptimizerImpl
from jobs.contract.findings import Finding
from jobs.contract.messages import gettext_noop as _
from jobs.contract.rules.table import Situation, refuse, rule
from jobs.contract.spec import Optimizer

WITH_FUSED = (Optimizer.SGD, Optimizer.ADAM, Optimizer.ADAMW, Optimizer.ADAGRAD)
WITH_CAPTURABLE = (Optimizer.ADAM, Optimizer.ADAMW, Optimizer.RMSPROP)
_WITH_MOMENTUM = (Optimizer.SGD, Optimizer.RMSPROP)


@rule
def momentum_where_there_is_one(at: Situation) -> Iterator[Finding]:
    """Adam and Adagrad keep averages of their own."""
    if at.spec.momentum > 0 and at.spec.optimizer not in _WITH_MOMENTUM:
        yield refuse(
            "momentum",
            _("%(optimizer)s has no momentum option. Set it to 0, or choose sgd or rmsprop."),
            optimizer=at.spec.optimizer.value,
        )


@rule
def optimizer_implementation(at: Situation) -> Iterator[Finding]:
    """Not every algorithm has every implementation."""
    asked, optimizer = at.spec.optimizer_impl, at.spec.optimizer
    has_it = {OptimizerImpl.FUSED: WITH_FUSED, OptimizerImpl.CAPTURABLE: WITH_CAPTURABLE}
    if optimizer not in has_it.get(asked, (optimizer,)):
        yield refuse(
            "optimizer_impl",
            _("%(optimizer)s has no %(impl)s implementation. Choose another one or one of %(optimizers)s."),
            optimizer=optimizer.value,
            impl=asked.value,
            optimizers=", ".join(name.value for name in has_it[asked]),
        )
    if asked is OptimizerImpl.CAPTURABLE and at.device_kind == "cpu":
        yield refuse("optimizer_impl", _("capturable is for CUDA graphs; this job runs on the CPU."))


@rule
def warmup_ends(at: Situation) -> Iterator[Finding]:
    """The learning rate reaches its height before the run ends."""
    if at.num_steps is not None and at.spec.warmup_steps >= at.num_steps:
        yield refuse(
            "warmup_steps",
            _("The warm-up of %(warmup)s steps does not end within the run's %(steps)s steps."),
            warmup=at.spec.warmup_steps,
            steps=at.num_steps,
        )


@rule
def class_weights_need_classes(at: Situation) -> Iterator[Finding]:
    """Class weights are of a classifier's labels."""
    dataset = at.catalog.dataset(at.spec.dataset)
    if at.spec.class_weights is not ClassWeights.NONE and dataset and dataset.target is not Target.CLASS:
        yield refuse(
            "class_weights", _("%(dataset)s has no classes to weigh. Set class weights to none."), dataset=dataset.name
        )
