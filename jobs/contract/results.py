"""A run's event lines read back as one result, for runs that nobody here supervised."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from pydantic import ValidationError

from jobs.contract.errors import PitwallError
from jobs.contract.events import Finished, Points, Started, Warned, parse_event
from jobs.contract.findings import Finding


class BrokenResult(PitwallError):
    """A result file is not the whole report of one run; the text says where."""


@dataclass
class Result:
    """One run: how it began, its curves, and how it ended."""

    started: Started
    finished: Finished
    points: list[Points] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def read_result(lines: Iterable[bytes]) -> Result:
    """The run on these lines. Raises `BrokenResult` with a sentence that names the line."""
    started: Started | None = None
    finished: Finished | None = None
    points: list[Points] = []
    findings: list[Finding] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        if finished is not None:
            raise BrokenResult(f"Line {number} comes after the end of the run. Give one file per run.")
        match _parse(number, line):
            case Started() as event if started is None:
                started = event
            case Started():
                raise BrokenResult(f"Line {number} begins a second run. Give one file per run.")
            case Points() as event:
                points.append(_whole(number, event))
            case Warned() as event:
                findings.append(event.finding)
            case Finished() as event:
                finished = event
    if started is None:
        raise BrokenResult("The file has no `started` line: the run never began, or this is no engine's output.")
    if finished is None:
        raise BrokenResult("The file has no `finished` line: the run was cut off, or has not ended yet.")
    return Result(started, finished, points, findings)


def _parse(number: int, line: bytes) -> object:
    try:
        return parse_event(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        reason = f"{where}: {first['msg']}" if where else first["msg"]
        raise BrokenResult(f"Line {number} is not an event of this version's engine ({reason}).") from error


def _whole(number: int, points: Points) -> Points:
    lengths = {len(points.steps), len(points.wall_s), *(len(values) for values in points.series.values())}
    if len(lengths) != 1 or not points.steps:
        raise BrokenResult(f"Line {number} has series of different lengths.")
    return points
