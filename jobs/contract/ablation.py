"""An ablation: what each option is worth alone, and what all lose without it.

From a baseline with every option off, its plan holds one option on at a time, all of them together, and all but one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.contract.options import Role
from jobs.contract.plan import Arrangement, Configuration, StudyPlan
from jobs.contract.spec import TrainSpec, fields_with_role

MOST_OPTIONS = 8

Option = Mapping[str, Any]  # the fields that switch it on, with their values

# Fields that mean something only together are one option, named after the first.
_BUNDLES = (
    ("precision", "initial_loss_scale"),
    ("compile_mode", "compile_scope"),
    ("data_loading", "num_workers", "prefetch_factor", "persistent_workers", "pin_memory", "non_blocking"),
)
# How the work is split and what is measured beside it: no options whose worth is asked for.
_NO_OPTIONS = {
    "device",
    "num_devices",
    "num_nodes",
    "parallelism",
    "micro_batch_size",
    "grad_accum_steps",
    "time_limit_s",
    "checkpoint_every_steps",
    "profile_steps",
    "phase_steps",
}
# What is tried on a job that has no option on.
USUAL_OPTIONS: tuple[Option, ...] = (
    {"precision": "bf16-mixed"},
    {"compile_mode": "default"},
    {"optimizer_impl": "fused"},
    {"channels_last": True},
    {"cudnn_benchmark": True},
    {"cuda_graph": True},
)


@dataclass(frozen=True)
class Design:
    """An ablation among the configurations of a study, by their places; None for those that it does not have."""

    options: list[Option]
    singles: list[int]
    together: int
    without: list[int | None]  # all but the option; with two options that is the other one alone


def options_of(spec: TrainSpec) -> list[Option]:
    """The options that a spec has on, in the order of its fields."""
    asked, defaults = spec.model_dump(mode="json"), TrainSpec().model_dump(mode="json")
    on = [name for name in fields_with_role(Role.CONFIGURATION) if name not in _NO_OPTIONS]
    on = [name for name in on if asked[name] != defaults[name]]
    bundles = dict.fromkeys(_bundle(name) for name in on)
    return [{name: asked[name] for name in bundle if name in on} for bundle in bundles]


def plan_ablation(spec: TrainSpec, options: Sequence[Option], num_repeats: int) -> StudyPlan:
    """The study that takes the options of a spec apart, or tries them on it. Raises ValueError without two of them."""
    if not 2 <= len(options) <= MOST_OPTIONS:
        raise ValueError("an ablation is of two options or more, and not of too many")
    defaults = TrainSpec().model_dump(mode="json")
    off = {name: defaults[name] for option in options for name in option}
    without = [_merged([*options[:place], *options[place + 1 :]]) for place in range(len(options))]
    return StudyPlan(
        base=spec.model_dump(mode="json") | off,
        arrangement=Arrangement.LIST,
        configurations=[*map(dict, options), _merged(options), *without],
        num_repeats=num_repeats,
    )


def read_design(configurations: Sequence[Configuration]) -> Design | None:
    """The ablation that a study's configurations make up, however they were asked for; None where they make none."""
    singles = _disjoint(configurations[1:])
    options: list[Option] = [single.changes for single in singles]
    together = _place_of(_merged(options), configurations)
    if len(singles) < 2 or together is None:
        return None
    others = [_merged([*options[:place], *options[place + 1 :]]) for place in range(len(options))]
    without = [_place_of(changes, configurations) for changes in others]
    return Design(options, [single.place for single in singles], together, without)


def _bundle(name: str) -> tuple[str, ...]:
    return next((bundle for bundle in _BUNDLES if name in bundle), (name,))


def _merged(options: Sequence[Option]) -> dict[str, Any]:
    return {name: value for option in options for name, value in option.items()}


def _disjoint(configurations: Sequence[Configuration]) -> list[Configuration]:
    """The first ones, as long as none changes a field that one before it does."""
    found: list[Configuration] = []
    seen: set[str] = set()
    for configuration in configurations:
        if seen & configuration.changes.keys():
            break
        found.append(configuration)
        seen |= configuration.changes.keys()
    return found


def _place_of(changes: Option, configurations: Sequence[Configuration]) -> int | None:
    return next((one.place for one in configurations if one.changes == changes), None)
