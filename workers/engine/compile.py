"""torch.compile, as the spec asks for it, and what it says about itself."""

from contextlib import AbstractContextManager
from typing import cast

import torch
from torch import nn
from torch._dynamo.utils import counters

from jobs.contract.choices import CompileScope
from jobs.contract.events import Warned
from jobs.contract.messages import gettext_noop as _
from jobs.contract.rules.table import warn
from jobs.contract.spec import CompileMode, Parallelism, TrainSpec
from workers.engine.blocks import require_blocks
from workers.engine.report import Report


def compile_model(wrapped: nn.Module, model: nn.Module, spec: TrainSpec) -> nn.Module:
    """What to call for a step; it compiles at its first call, so that the first step's time holds the compilation.

    `wrapped` is `model` as it was made parallel. Modules are compiled where they are, inside of what wraps them: their
    names stay, and DDP's own forward, which cannot be traced, is not in the way (of an `nn.Sequential` in DDP the
    compiler would take nothing at all). DDP's buckets still split the graphs, so that reduction overlaps.
    """
    if spec.compile_mode is CompileMode.OFF:
        return wrapped
    counters.clear()
    if spec.parallelism is Parallelism.DATA_PARALLEL:  # copies its model at each step, and a compiled one not truly
        return cast(nn.Module, torch.compile(wrapped, mode=spec.compile_mode.value))
    is_whole = spec.compile_scope is CompileScope.MODEL
    for module in [model] if is_whole else require_blocks(model, "compile_scope"):
        # Not `module.compile()`, which takes nothing of an `nn.Sequential`; hooks (FSDP2 has some) stay outside.
        module.forward = torch.compile(module.forward, mode=spec.compile_mode.value)
    return wrapped


def compiled_modules_set_aside() -> AbstractContextManager[None]:
    """Compiled modules run eagerly in here: evaluation has other shapes, and compiling for them is not its time."""
    return cast(AbstractContextManager[None], torch.compiler.set_stance("force_eager"))


class CompileCounts:
    """What the compiler counted, up to the first step's end and up to now."""

    def __init__(self, spec: TrainSpec) -> None:
        self._is_compiled = spec.compile_mode is not CompileMode.OFF
        self._frames_of_first_step: int | None = None

    def end_first_step(self) -> None:
        """What is compiled from here on is compiled again."""
        self._frames_of_first_step = counters["frames"]["total"]

    def store(self, report: Report) -> None:
        """Graphs, breaks between them, frames compiled again after the first step, and hits of the shared cache."""
        if not self._is_compiled or self._frames_of_first_step is None:
            return
        summary = report.summary
        summary.num_graphs = counters["stats"]["unique_graphs"]
        summary.num_graph_breaks = sum(counters["graph_break"].values())
        summary.num_recompiles = counters["frames"]["total"] - self._frames_of_first_step
        summary.num_compile_cache_hits = counters["aot_autograd"]["autograd_cache_hit"]
        summary.num_compile_cache_misses = counters["aot_autograd"]["autograd_cache_miss"]
        if not summary.num_graphs:
            sentence = _("The compiler found nothing that it could compile: the steps ran as without it.")
            report.emit(Warned(finding=warn("compile_mode", sentence)))
