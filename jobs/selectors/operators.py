"""The profiler's table of operators, as a run left it among its files."""

from pydantic import BaseModel, ValidationError

from jobs.attempt_files import AttemptFiles, open_inside
from jobs.models import Attempt

_MOST_BYTES = 2_000_000


class Operator(BaseModel):
    """One operator or kernel; times in microseconds, over all profiled steps."""

    name: str
    library: str
    count: int
    self_cpu_us: float
    self_device_us: float


class OperatorTable(BaseModel):
    """The operators with the most time of their own; `sorted_by` names the time that counts."""

    num_steps: int
    sorted_by: str
    operators: list[Operator]

    @property
    def is_of_device(self) -> bool:
        """Whether it is the device's time, or else the host's."""
        return self.sorted_by == "self_device_us"

    @property
    def rows(self) -> list["OperatorRow"]:
        """Milliseconds of a step, with each one's share of the largest."""
        total = sum(self._time_us(each) for each in self.operators) or 1.0
        most = max((self._time_us(each) for each in self.operators), default=0.0) or 1.0
        steps = max(1, self.num_steps)
        return [
            OperatorRow(
                name=each.name,
                library=each.library,
                calls_per_step=each.count / steps,
                ms_per_step=self._time_us(each) / 1000 / steps,
                percent=100 * self._time_us(each) / total,
                percent_of_most=100 * self._time_us(each) / most,
            )
            for each in self.operators
        ]

    def _time_us(self, each: Operator) -> float:
        return max(0.0, each.self_device_us if self.is_of_device else each.self_cpu_us)


class OperatorRow(BaseModel):
    """One line of the table as a page shows it."""

    name: str
    library: str
    calls_per_step: float
    ms_per_step: float
    percent: float
    percent_of_most: float


def read_operators(attempt: Attempt | None) -> OperatorTable | None:
    """The table; None where the run made none, or its file is gone or is not one."""
    found = [artifact for artifact in attempt.artifacts if artifact.get("kind") == "operators"] if attempt else []
    if attempt is None or not found:
        return None
    file = open_inside(AttemptFiles(attempt.pk).artifacts, found[-1]["file"])
    if file is None:
        return None
    with file:
        try:
            return OperatorTable.model_validate_json(file.read(_MOST_BYTES))
        except ValidationError:
            return None
