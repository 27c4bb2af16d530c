"""Where a step's time goes, and what that means in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobs.selectors.baseline import CellRow
from jobs.selectors.columns import Column
from jobs.selectors.values import known_spec

PHASES: dict[str, Promise] = {
    "phase_data_wait_ms": _("Waiting for data"),
    "phase_host_to_device_ms": _("Copy to the device"),
    "phase_forward_ms": _("Forward"),
    "phase_backward_ms": _("Backward"),
    "phase_optimizer_ms": _("Optimizer"),
    "phase_communication_exposed_ms": _("Exposed communication"),
}

_EXPOSED = "phase_communication_exposed_ms"

# What waits for communication, and so holds what is exposed: where weights are gathered, both passes do.
_WAITING, _WAITING_UNDER_FSDP2 = ("phase_backward_ms",), ("phase_forward_ms", "phase_backward_ms")

# From these shares of a step on, a part other than computing is what to look at first.
_MOST_DATA, _MOST_COPY, _MOST_COMMUNICATION, _MOST_OPTIMIZER = 0.2, 0.15, 0.2, 0.3


@dataclass(frozen=True)
class StepParts:
    """One column's step: milliseconds of each part that was measured, in order, and a verdict in words."""

    column: Column
    parts_ms: dict[str, float]
    verdict: str

    @property
    def total_ms(self) -> float:
        """All parts together."""
        return sum(self.parts_ms.values())


def step_parts(columns: Sequence[Column], rows: Mapping[str, CellRow]) -> list[StepParts]:
    """The parts of a step for every column that measured some."""
    found = []
    for place, column in enumerate(columns):
        measured = {name: rows[name].cells[place].value for name in PHASES if name in rows}
        spec = known_spec(column.jobs[0])
        parts = _apart({name: max(0.0, value) for name, value in measured.items() if value is not None}, spec)
        if sum(parts.values()) > 0:
            found.append(StepParts(column, parts, verdict_of(parts, spec)))
    return found


def _apart(measured: dict[str, float], spec: Mapping[str, Any]) -> dict[str, float]:
    """Parts that do not overlap, so that they can be stacked.

    How much of the exposed communication lies in which of two passes is not known: both give up the same share.
    """
    waiting = [name for name in (_WAITING_UNDER_FSDP2 if _gathers_weights(spec) else _WAITING) if name in measured]
    total = sum(measured[name] for name in waiting)
    if _EXPOSED not in measured or not total:
        return measured
    waited = min(measured[_EXPOSED], total)
    return measured | {name: measured[name] - waited * measured[name] / total for name in waiting}


def _gathers_weights(spec: Mapping[str, Any]) -> bool:
    return spec.get("parallelism") == "fsdp2"


def verdict_of(parts_ms: Mapping[str, float], spec: Mapping[str, Any]) -> str:
    """What a step mostly waits for, and which option to try first."""
    total = sum(parts_ms.values())
    share = {name: parts_ms.get(name, 0.0) / total for name in PHASES}
    if share["phase_data_wait_ms"] >= _MOST_DATA:
        return _data_bound(share["phase_data_wait_ms"], spec)
    if share[_EXPOSED] >= _MOST_COMMUNICATION:
        return _communication_bound(share[_EXPOSED], spec)
    if share["phase_host_to_device_ms"] >= _MOST_COPY:
        return gettext("copy-bound: %(n)d %% copying to the device; keep the data there, or turn pin_memory on") % {
            "n": _percent(share["phase_host_to_device_ms"])
        }
    if share["phase_optimizer_ms"] >= _MOST_OPTIMIZER:
        return gettext("optimizer-bound: %(n)d %% updating weights; try a fused optimizer or a larger batch") % {
            "n": _percent(share["phase_optimizer_ms"])
        }
    computing = share["phase_forward_ms"] + share["phase_backward_ms"]
    return gettext("compute-bound: %(n)d %% forward and backward; a shorter precision or compilation may help") % {
        "n": _percent(computing)
    }


def _data_bound(share: float, spec: Mapping[str, Any]) -> str:
    words = {"n": _percent(share), "workers": spec.get("num_workers") or 0}
    if spec.get("data_loading") == "on-device":
        return (
            gettext("data-bound: %(n)d %% waiting for data, although it lives on the device; raise the batch") % words
        )
    return gettext("data-bound: %(n)d %% waiting for data; raise num_workers (now %(workers)s)") % words


def _communication_bound(share: float, spec: Mapping[str, Any]) -> str:
    words = {"n": _percent(share)}
    if _gathers_weights(spec):  # for each micro-batch anew
        return gettext("communication-bound: %(n)d %% waiting for other ranks; raise micro_batch_size") % words
    return (
        gettext("communication-bound: %(n)d %% waiting for other ranks; raise grad_accum_steps or compress gradients")
        % words
    )


def _percent(share: float) -> int:
    return round(100 * share)
