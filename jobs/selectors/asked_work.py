"""Whether a spec that has not run yet asks for a board's work, as far as can be told before an engine resolves it."""

from collections.abc import Mapping
from typing import Any

from jobs.contract.lengths import length_in_steps
from jobs.contract.options import Role
from jobs.contract.spec import DeviceKind, TrainSpec, fields_with_role
from jobs.contract.states import OPEN_STATES
from jobs.models import Board, Job
from jobs.selectors.hosts import known_catalog

_MOST_OPEN = 500
_LENGTH_FIELDS = ("num_steps", "num_epochs")


def in_steps(spec: TrainSpec) -> TrainSpec:
    """The spec with its length in steps; as it is where no worker online knows the size of its data set."""
    if spec.num_epochs is None:
        return spec
    dataset = known_catalog().dataset(spec.dataset)
    num_steps = length_in_steps(spec, dataset.num_train_samples if dataset else None)
    return spec if num_steps is None else spec.model_copy(update={"num_steps": num_steps, "num_epochs": None})


def asks_for_work(spec: TrainSpec, work: Mapping[str, Any]) -> bool:
    """Whether a run of the spec does this work; what it leaves open may be resolved to anything."""
    asked = spec.model_dump(mode="json")
    names = [name for name in fields_with_role(Role.WORKLOAD) if name not in _LENGTH_FIELDS]
    is_as_long = spec.num_steps is None or spec.num_steps == work["num_steps"]
    is_alike = all(asked[name] is None or asked[name] == work.get(name) for name in names)
    return is_as_long and is_alike and spec.global_batch_size == work["global_batch_size"]


def asks_for_configuration(spec: TrainSpec, configuration: Mapping[str, Any]) -> bool:
    """Whether a run of the spec has this configuration; what it leaves open may be resolved to anything."""
    asked = spec.model_dump(mode="json")
    if spec.device is DeviceKind.AUTO:
        asked["device"] = None
    return all(asked[name] is None or asked[name] == value for name, value in configuration.items() if name in asked)


def open_runs(board: Board) -> list[Job]:
    """The team's jobs that wait or run and ask for the board's work, wherever they will run."""
    # No outcome yet: so the few that are open are found by that, and not among all runs of the model.
    found = Job.objects.filter(
        team=board.team_id, outcome=None, state__in=OPEN_STATES, model=board.model, dataset=board.dataset
    ).only("pk", "spec", "state", "queue")
    asked = ((job, job.stored_spec) for job in found[:_MOST_OPEN])
    return [job for job, stored in asked if not stored.unread and asks_for_work(stored.spec, board.workload)]
