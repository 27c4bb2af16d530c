"""The boards that a million runs leave, written as the service would have kept them run by run."""

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from jobs.board_runs import MOST_RUNS, BoardRun, run_of
from jobs.contract.keys import configuration, configuration_key, workload
from jobs.contract.metrics import Summary
from jobs.contract.spec import TrainSpec
from jobs.contract.states import Outcome
from jobs.loss_course import Course, target_of
from jobs.models import Board, BoardEntry, Workload
from jobs.services.boards import TELLING, median_step_time_ms

_NUM_LEVELS = 24
_MARGIN = 0.01
_AT_ONCE = 500


@dataclass(frozen=True)
class Ground:
    """What all runs of a spec share: their work, the device and the versions."""

    spec: TrainSpec  # resolved
    workload_key: str
    environment_key: str
    device_name: str
    versions: dict[str, str]
    configuration_key: str

    @classmethod
    def of(
        cls, spec: TrainSpec, resolved: dict[str, Any], attempt: dict[str, Any], versions: dict[str, str]
    ) -> "Ground":
        """From what an attempt at the spec stores."""
        keys = (attempt["workload_key"], attempt["environment_key"])
        return cls(spec, *keys, attempt["device_name"], versions, configuration_key(resolved))


@dataclass(frozen=True)
class Ended:
    """A run that ended, as far as a board keeps it."""

    job: int
    owner: str
    seed: int
    at: datetime
    figures: dict[str, Any]


@dataclass
class _Entry:
    ground: Ground
    outcomes: Counter[str] = field(default_factory=Counter)
    newest: deque[Ended] = field(default_factory=lambda: deque(maxlen=MOST_RUNS))
    last_at: datetime | None = None


class ManyBoards:
    """Counts runs as they are made, the oldest first, and writes their boards once all are there."""

    def __init__(self) -> None:
        self._entries: dict[tuple[int, str, str], dict[str, _Entry]] = {}

    def add(self, team_id: int, ground: Ground, outcome: str, ended: Ended) -> None:
        """One more run of that ground."""
        if outcome not in TELLING:
            return
        entries = self._entries.setdefault((team_id, ground.workload_key, ground.environment_key), {})
        entry = entries.setdefault(ground.configuration_key, _Entry(ground))
        entry.outcomes[outcome] += 1
        entry.last_at = ended.at
        if outcome == Outcome.SUCCEEDED:
            entry.newest.append(ended)

    def store(self) -> None:
        """Write boards and entries; each board's first entry is its baseline."""
        works = {key for _team, key, _ground in self._entries}
        target = target_of(_course(1.0))
        Workload.objects.bulk_create([Workload(key=key, loss_margin=_MARGIN, target_loss=target) for key in works])
        boards = Board.objects.bulk_create(map(_board, *zip(*self._entries.items(), strict=True)), batch_size=_AT_ONCE)
        rows = [row for board in boards for row in self._rows(board)]
        BoardEntry.objects.bulk_create(rows, batch_size=_AT_ONCE)
        for board in boards:
            board.baseline = board.entries.first()
        Board.objects.bulk_update(boards, ["baseline"], batch_size=_AT_ONCE)

    def _rows(self, board: Board) -> Iterator[BoardEntry]:
        for key, entry in self._entries[board.team_id, board.workload_key, board.environment_key].items():
            course = _course(1.0)
            row = BoardEntry(board=board, configuration_key=key, outcomes=dict(entry.outcomes))
            row.configuration = configuration(entry.ground.spec.model_dump(mode="json"))
            row.runs = [_run(ended, course).as_json() for ended in entry.newest]
            row.courses = {str(ended.job): course for ended in entry.newest}
            row.step_time_ms = median_step_time_ms(row)
            row.last_ended_at = entry.last_at
            yield row


def _board(keys: tuple[int, str, str], entries: dict[str, _Entry]) -> Board:
    ground = next(iter(entries.values())).ground
    work = workload(ground.spec, "r1")
    ends = [entry.last_at for entry in entries.values() if entry.last_at]
    return Board(
        team_id=keys[0],
        workload_key=keys[1],
        environment_key=keys[2],
        workload=work,
        model=work["model"],
        dataset=work["dataset"],
        device_name=ground.device_name,
        versions=ground.versions,
        num_runs=sum(entry.outcomes.total() for entry in entries.values()),
        first_ended_at=min(ends),
        last_ended_at=max(ends),
    )


def _course(last: float) -> Course:
    """A loss that falls from three to `last` within a minute."""
    return [(3 + (last - 3) * step / _NUM_LEVELS, 2.5 * step) for step in range(_NUM_LEVELS + 1)]


def _run(ended: Ended, course: Course) -> BoardRun:
    about: dict[str, Any] = {
        "job": ended.job,
        "seed": ended.seed,
        "owner": ended.owner,
        "ended_at": ended.at.isoformat(),
    }
    return run_of(Summary.model_validate(ended.figures), course, target_of(course), **about)
