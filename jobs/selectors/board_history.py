"""One work on one device over time, across its versions: each configuration's step time, and who got slower.

Here the environment varies, which a ranking never lets it: so nothing is ranked, and each change of versions is marked.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import median
from typing import Any

from django.utils.translation import gettext

from jobs.board_runs import BoardRun
from jobs.contract.keys import configuration
from jobs.models import Board, BoardEntry
from jobs.ranking import Repeats, ratio_to
from jobs.statistics import NARROW_HALF_WIDTH, RatioInterval, Verdict, judge

_MOST_BOARDS = 12
_MOST_ENTRIES = 300
_VERSIONS = ("driver", "torch", "engine")


@dataclass(frozen=True)
class Moment:
    """A configuration's runs of one day on one ground."""

    at: str  # when the newest of them ended, ISO 8601 to the second
    step_time_ms: float  # the median
    n: int


@dataclass(frozen=True)
class Line:
    """One configuration over time."""

    key: str
    configuration: dict[str, Any]
    moments: list[Moment]


@dataclass(frozen=True)
class Change:
    """When runs on another ground began, and in what it differs from the one before."""

    at: datetime
    board: Board
    words: str  # "torch 2.12.1 → 2.13.0"


@dataclass(frozen=True)
class Regression:
    """A configuration that got slower beyond noise: from the ground before to this one, or on this one."""

    key: str
    configuration: dict[str, Any]
    ratio: RatioInterval
    words: str  # what changed


@dataclass(frozen=True)
class BoardHistory:
    """What is known of a board's work on its device."""

    lines: list[Line]
    changes: list[Change]
    regressions: list[Regression]

    @property
    def best(self) -> list[Moment]:
        """The fastest until each day, as a line that only falls."""
        moments = sorted((one for line in self.lines for one in line.moments), key=lambda one: one.at)
        best: list[Moment] = []
        for one in moments:
            if not best or one.step_time_ms < best[-1].step_time_ms:
                best.append(one)
        return best


def history_of(board: Board) -> BoardHistory:
    """The board among those of the same team, work and device; two queries."""
    family = _family(board)
    entries = BoardEntry.objects.filter(board__in=family, step_time_ms__isnull=False).defer("courses")
    by_board: dict[int, dict[str, BoardEntry]] = defaultdict(dict)
    for entry in entries.order_by("-last_ended_at")[:_MOST_ENTRIES]:
        by_board[entry.board_id][entry.configuration_key] = entry
    changes = [Change(new.first_ended_at, new, _changed(old, new)) for old, new in pairwise(family)]
    return BoardHistory(_lines(family, by_board), changes, _regressions(board, family, by_board))


def _family(board: Board) -> list[Board]:
    """The newest boards that differ from this one in versions alone, the oldest first."""
    same = Board.objects.filter(team=board.team_id, workload_key=board.workload_key, device_name=board.device_name)
    return sorted(same.order_by("-first_ended_at", "-pk")[:_MOST_BOARDS], key=lambda one: (one.first_ended_at, one.pk))


def _lines(family: Sequence[Board], by_board: dict[int, dict[str, BoardEntry]]) -> list[Line]:
    """Each configuration's line, the fastest one first."""
    groups: dict[str, list[BoardEntry]] = defaultdict(list)
    for board in family:
        for key, entry in by_board[board.pk].items():
            groups[key].append(entry)
    lines = [
        Line(key, configuration(group[-1].configuration), [one for entry in group for one in _moments(entry)])
        for key, group in groups.items()
    ]
    return sorted((line for line in lines if line.moments), key=lambda line: line.moments[-1].step_time_ms)


def _moments(entry: BoardEntry) -> list[Moment]:
    return [_moment(runs) for runs in _days(entry).values()]


def _days(entry: BoardEntry) -> dict[str, list[BoardRun]]:
    """Its runs that have a time by the day on which they ended, the first day first."""
    days: dict[str, list[BoardRun]] = defaultdict(list)
    for run in map(BoardRun.from_json, entry.runs):
        if run.steady_step_time_ms is not None:
            days[run.ended_at[:10]].append(run)
    return dict(sorted(days.items()))


def _moment(runs: Sequence[BoardRun]) -> Moment:
    times_ms = [run.steady_step_time_ms or 0.0 for run in runs]
    return Moment(max(run.ended_at for run in runs)[:19], median(times_ms), len(runs))


def _regressions(board: Board, family: Sequence[Board], by_board: dict[int, dict[str, BoardEntry]]) -> list[Regression]:
    """Against the newest ground before this one that has the same configuration."""
    place = next((index for index, one in enumerate(family) if one.pk == board.pk), 0)
    found = []
    for key, entry in by_board[board.pk].items():
        before = next((one for one in reversed(family[:place]) if key in by_board[one.pk]), None)
        if before is None:
            continue
        ratio = ratio_to(_times(entry), _times(by_board[before.pk][key]))
        if ratio and judge(ratio, lower_is_better=True) is Verdict.WORSE:
            found.append(Regression(key, configuration(entry.configuration), ratio, _changed(before, board)))
    found += [one for entry in by_board[board.pk].values() if (one := _slower_on_the_same_ground(entry))]
    return sorted(found, key=lambda one: -one.ratio.ratio)


def _slower_on_the_same_ground(entry: BoardEntry) -> Regression | None:
    """Whether its runs of the last day are slower than those before, though no version changed that is known here.

    Seeds of two days are no repeats that took turns: less than what would matter may be the day's.
    """
    days = _days(entry)
    if len(days) < 2:
        return None
    *earlier, last = days.values()
    before = [run for runs in reversed(earlier) for run in runs]
    ratio = ratio_to(_of_runs(last), _of_runs(before))
    if ratio is None or ratio.ratio < 1 + NARROW_HALF_WIDTH or judge(ratio, lower_is_better=True) is not Verdict.WORSE:
        return None
    *_more, day, last_day = days
    words = gettext("the same versions, %(before)s → %(after)s") % {"before": day, "after": last_day}
    return Regression(entry.configuration_key, configuration(entry.configuration), ratio, words)


def _times(entry: BoardEntry) -> Repeats:
    return _of_runs(map(BoardRun.from_json, entry.runs))


def _of_runs(runs: Iterable[BoardRun]) -> Repeats:
    return [(run.seed, run.steady_step_time_ms) for run in runs if run.steady_step_time_ms is not None]


def _changed(old: Board, new: Board) -> str:
    names = [name for name in _VERSIONS if old.versions.get(name) != new.versions.get(name)]
    return ", ".join(f"{name} {old.versions.get(name) or '–'} → {new.versions.get(name) or '–'}" for name in names)
