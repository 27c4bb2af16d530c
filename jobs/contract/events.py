"""What an engine reports while it runs: one JSON object per line, in this order.

`phase` as each one begins, `started` once early in the second one, any number of `warning`, `points` and
`artifact`, and last
`finished`. Numbers that are not finite travel as the strings "NaN", "Infinity" and "-Infinity".
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from jobs.contract.facts import Hardware
from jobs.contract.findings import Finding
from jobs.contract.metrics import Summary
from jobs.contract.spec import TrainSpec
from jobs.contract.states import Outcome


class _Event(BaseModel):
    model_config = ConfigDict(ser_json_inf_nan="strings")


class Started(_Event):
    """The run was accepted on this host: what every open choice resolved to, and what it runs on."""

    type: Literal["started"] = "started"
    pid: int
    spec: TrainSpec  # `device` and `num_steps` are resolved
    device_name: str
    dataset_revision: str
    num_train_samples: int
    versions: dict[str, str]  # engine, python, and each library or driver that a result may depend on
    hardware: Hardware | None = None  # None in what older engines told


class Phase(_Event):
    """A phase begins: importing, building, first_step, training, evaluating, measuring."""

    type: Literal["phase"] = "phase"
    name: str


class Warned(_Event):
    """A rule's warning, or something that the run noticed about itself."""

    type: Literal["warning"] = "warning"
    finding: Finding


class Points(_Event):
    """A stretch of one or more series over the same steps.

    `steps` count optimizer steps from 1; `wall_s` are seconds since the first step began, read at the edges of a
    measuring window and interpolated inside it; each list in `series` is as long as `steps`. Series whose names begin
    with `telemetry.` are sampled once a second whatever the steps do: their wall time is the sample's own, their step
    is the last one whose loss had come over by then, 0 before the first.
    """

    type: Literal["points"] = "points"
    steps: list[int]
    wall_s: list[float]
    series: dict[str, list[float]]


class Artifact(_Event):
    """A file was written into the run's artifacts folder. Old checkpoints are deleted again, without a word."""

    type: Literal["artifact"] = "artifact"
    name: str
    kind: str  # checkpoint, trace, operators, memory_snapshot
    file: str  # relative to the artifacts folder
    size_bytes: int


class MemoryHolder(BaseModel):
    """Something that holds memory, by name."""

    name: str
    size_bytes: int


class MemoryInfo(BaseModel):
    """The figures when memory ran out; the allocator's are None on a CPU, and what was not told is None."""

    asked_bytes: int | None = None  # what could not be had
    allocated_bytes: int | None = None  # handed out by torch's GPU allocator
    reserved_bytes: int | None = None  # held by it
    rss_bytes: int | None = None  # of the process
    largest: list[MemoryHolder] = []  # the three largest that are known, largest first


class ErrorInfo(BaseModel):
    """Why a run ended badly: a sentence for the page and the traceback behind it."""

    type: str
    message: str
    traceback: str = ""
    phase: str = ""
    step: int | None = None
    rank: int | None = None
    findings: list[Finding] = []
    memory: MemoryInfo | None = None  # where memory ran out
    proposed_spec: TrainSpec | None = None  # does the same work and may fit


class Finished(_Event):
    """The last line: how it ended, with all that was measured until then."""

    type: Literal["finished"] = "finished"
    outcome: Outcome
    summary: Summary
    error: ErrorInfo | None = None


Event = Annotated[Started | Phase | Warned | Points | Artifact | Finished, Field(discriminator="type")]
_adapter: TypeAdapter[Event] = TypeAdapter(Event)


def parse_event(line: str | bytes) -> Event:
    """The event on one line; raises pydantic's ValidationError where the line is not one."""
    return _adapter.validate_json(line)
