"""The leaderboard: which configuration does the same work best on the same ground, at equal loss, beyond noise."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from statistics import median
from typing import Any

from django.db.models import Count, F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobs.board_runs import BoardRun
from jobs.contract.keys import configuration
from jobs.contract.metrics import Better
from jobs.contract.options import Role
from jobs.contract.spec import fields_with_role
from jobs.contract.states import Outcome
from jobs.equal_loss import LossComparison, LossVerdict, capped_margin, compare_losses
from jobs.loss_course import time_to
from jobs.messages import option_title
from jobs.models import Board, BoardEntry, User, Workload
from jobs.needed_memory import fits
from jobs.ranking import Repeats, middle_of, ratio_to, seed_differences, share_places
from jobs.reproduction import seeds_wanted
from jobs.selectors.board_filter import BoardFilter
from jobs.selectors.jobs import teams_of
from jobs.statistics import RatioInterval, Verdict, judge, repeats_interval

# So many seeds make a verdict of equal loss likely where there is one; see `jobs.equal_loss`.
WANTED_SEEDS = 5
# More configurations than this are not read for one page: the fastest are.
MOST_ENTRIES = 200

TIME_TO_TARGET = "time_to_target_s"
ENERGY_TO_TARGET = "energy_to_target_j"
LOSS = "final_eval_loss"


@dataclass(frozen=True)
class BoardMetric:
    """A figure that configurations are ranked by."""

    name: str  # of `BoardRun`
    label: str | Promise
    unit: str
    better: Better

    @property
    def lower_is_better(self) -> bool:
        """Its direction."""
        return self.better is Better.LOWER

    @property
    def is_to_target(self) -> bool:
        """Whether it may not be reached at all."""
        return self.name in (TIME_TO_TARGET, ENERGY_TO_TARGET)


METRICS = {
    metric.name: metric
    for metric in (
        BoardMetric("steady_step_time_ms", _("Step time"), "ms", Better.LOWER),
        BoardMetric("samples_per_s", _("Throughput"), "/s", Better.HIGHER),
        BoardMetric(TIME_TO_TARGET, _("Time to target loss"), "s", Better.LOWER),
        BoardMetric("peak_bytes", _("Peak memory"), "bytes", Better.LOWER),
        BoardMetric(ENERGY_TO_TARGET, _("Energy to target loss"), "J", Better.LOWER),
        BoardMetric("mfu", _("MFU"), "", Better.HIGHER),
    )
}
LOSS_METRIC = BoardMetric(LOSS, _("Evaluation loss"), "", Better.LOWER)
FIRST_METRIC = "steady_step_time_ms"


class Standing(StrEnum):
    """Whether a configuration may rank, and if not, why."""

    BASELINE = "baseline"
    EQUAL = "equal"
    BETTER = "better"
    UNGATED = "ungated"  # the work has no loss that could be compared
    WORSE = "worse"
    INSUFFICIENT = "insufficient"
    FAILED = "failed"  # no run of it ended well

    @property
    def may_rank(self) -> bool:
        """Whether it ranks by default."""
        return self in (Standing.BASELINE, Standing.EQUAL, Standing.BETTER, Standing.UNGATED)


@dataclass(frozen=True)
class Column:
    """A configuration field by its name and label."""

    name: str
    label: str


@dataclass(frozen=True)
class Cell:
    """A figure over the repeats of one configuration; `median` is infinite where most never reached the target."""

    median: float | None
    low: float | None  # the 95 % interval, None for fewer than two repeats
    high: float | None
    n: int
    num_missed: int = 0  # of `n`, those that never reached the target

    @property
    def is_reached(self) -> bool:
        """Whether most repeats reached the target."""
        return self.median is None or math.isfinite(self.median)


@dataclass(frozen=True)
class Asked:
    """What of a board is asked for."""

    metric: str = FIRST_METRIC
    ranks_all: bool = False  # also what is not shown to be of equal loss
    budget_bytes: float | None = None  # only what fits into so much memory
    baseline: int | None = None  # an entry; the board's own where it is None
    target: float | None = None  # a training loss; the work's own where it is None
    only: BoardFilter | None = None  # configurations and runs that are looked at; None: all


@dataclass(frozen=True)
class BoardRow:
    """One configuration."""

    entry: BoardEntry
    runs: list[BoardRun]  # those that the board keeps
    configuration: dict[str, Any]
    standing: Standing
    rank: int | None  # None where it does not rank
    is_tie: bool
    cells: dict[str, Cell]
    ratio: RatioInterval | None  # of the ranking metric, to the baseline
    verdict: Verdict
    is_faster: bool  # in its steps than the baseline, beyond noise, whatever the rows are ranked by
    loss: LossComparison | None
    outcomes: dict[str, int]  # how many of its runs ended otherwise than well
    num_runs: int  # of all that were ever made

    @property
    def n(self) -> int:
        """Runs that its figures are of."""
        return len(self.runs)

    @property
    def num_seeds(self) -> int:
        """Different seeds among them."""
        return len({run.seed for run in self.runs})

    @property
    def num_wanted(self) -> int:
        """Seeds that it takes to verify it."""
        return seeds_wanted(self.runs)

    @property
    def job_ids(self) -> list[int]:
        """Its newest runs, the newest first."""
        return [run.job for run in reversed(self.runs)]

    @property
    def owners(self) -> list[str]:
        """Who made them, each once."""
        return list(dict.fromkeys(run.owner for run in reversed(self.runs)))

    @property
    def is_baseline(self) -> bool:
        """Whether all others are held against it."""
        return self.standing is Standing.BASELINE

    @property
    def is_faster_not_equal(self) -> bool:
        """Whether it is faster than the baseline beyond noise, but not at equal loss."""
        return self.standing is Standing.WORSE and self.is_faster


@dataclass(frozen=True)
class BoardView:
    """A board with its rows: those that rank in their order, then the others, then what never ended well."""

    board: Board
    metric: BoardMetric
    columns: list[Column]  # the configuration fields in which the rows differ
    rows: list[BoardRow]
    margin: float | None
    target: float | None
    is_margin_capped: bool = False  # the work's own is wider than what counts beside this baseline
    num_hidden: int = 0  # rows that the budget or the filter leaves out
    num_unread: int = 0  # configurations beyond those that are read for one page
    budget_bytes: float | None = None
    all_rows: list[BoardRow] = field(default_factory=list)  # with those that do not fit

    @cached_property
    def title(self) -> str:
        """The work in words."""
        work: dict[str, Any] = self.board.workload
        return gettext(
            "%(model)s on %(dataset)s, %(num_steps)s steps of %(global_batch_size)s samples, "
            "%(optimizer)s at learning rate %(learning_rate)s"
        ) % (work | {"learning_rate": f"{work['learning_rate']:g}"})

    @property
    def baseline(self) -> BoardRow | None:
        """The row that the others are held against."""
        return next((row for row in self.all_rows if row.is_baseline), None)

    @property
    def winner(self) -> BoardRow | None:
        """The row that ranks first, where anything ranks."""
        return next((row for row in self.rows if row.rank == 1), None)

    @property
    def ranked(self) -> list[BoardRow]:
        """The rows that have a place."""
        return [row for row in self.rows if row.rank is not None]

    @property
    def unranked(self) -> list[BoardRow]:
        """The rows without one."""
        return [row for row in self.rows if row.rank is None]


def visible_boards(user: User) -> QuerySet[Board]:
    """The boards of the user's teams, the last used one first; staff see every one."""
    boards = Board.objects.select_related("team").order_by("-last_ended_at", "-pk")
    return boards if user.is_staff else boards.filter(team__in=teams_of(user))


def with_counts(boards: QuerySet[Board]) -> QuerySet[Board]:
    """The boards with how many configurations each has."""
    entries = BoardEntry.objects.filter(board=OuterRef("pk")).order_by().values("board")
    return boards.annotate(num_entries=Coalesce(Subquery(entries.annotate(n=Count("pk")).values("n")), 0))


def view_board(board: Board, asked: Asked | None = None) -> BoardView:
    """Everything that its page shows; two queries, four where it has more configurations than are read."""
    asked = asked or Asked()
    entries, num_unread = _read_entries(board, asked)
    workload = Workload.objects.filter(pk=board.workload_key).first()
    fixed = workload.loss_margin if workload and workload.loss_margin > 0 else None
    target = asked.target if asked.target is not None else workload.target_loss if workload else None
    runs = {entry.pk: _runs(entry, asked, target) for entry in entries}
    base_id = _baseline_id(board, entries, runs, asked)
    metric = METRICS[asked.metric]
    baseline = runs.get(base_id or 0, [])  # whole, whatever the rows are narrowed to
    margin = None if fixed is None else capped_margin(fixed, [loss for _seed, loss in repeats_of(baseline, LOSS)])
    base = next((entry for entry in entries if entry.pk == base_id), None)
    rows = [_row(entry, _narrowed(runs[entry.pk], asked), baseline, base, margin, metric) for entry in entries]
    if asked.only:
        only = asked.only
        rows = [row for row in rows if only.allows(row.configuration) and (row.runs or not only.narrows_runs)]
    # What ran out of memory told no peak, and does not fit.
    fitting = [row for row in rows if fits(row.cells["peak_bytes"].median, asked.budget_bytes)]
    return BoardView(
        board=board,
        metric=metric,
        columns=_columns(rows),
        rows=_in_places(fitting, metric, ranks_all=asked.ranks_all),
        margin=margin,
        is_margin_capped=margin != fixed,
        target=target,
        num_hidden=len(entries) - len(fitting),
        num_unread=num_unread,
        budget_bytes=asked.budget_bytes,
        all_rows=rows,
    )


def _read_entries(board: Board, asked: Asked) -> tuple[list[BoardEntry], int]:
    """The fastest, those without a time behind, and what they are held against; how many are not read."""
    found = board.entries.order_by(F("step_time_ms").asc(nulls_last=True), "pk")
    found = found if asked.target is not None else found.defer("courses")
    entries = list(found[: MOST_ENTRIES + 1])
    if len(entries) <= MOST_ENTRIES:
        return entries, 0
    entries = entries[:MOST_ENTRIES]
    read = {entry.pk for entry in entries}
    unread = {pk for pk in (asked.baseline, board.baseline_id) if pk is not None and pk not in read}
    entries += found.filter(pk__in=unread) if unread else []
    return entries, board.entries.count() - len(entries)


def _runs(entry: BoardEntry, asked: Asked, target: float | None) -> list[BoardRun]:
    runs = [BoardRun.from_json(stored) for stored in entry.runs]
    if target is None:
        return [replace(run, has_course=False) for run in runs]  # where there is no target, none was missed
    return [_retimed(run, entry, target) for run in runs] if asked.target is not None else runs


def _narrowed(runs: list[BoardRun], asked: Asked) -> list[BoardRun]:
    return [run for run in runs if asked.only.allows_run(run)] if asked.only else runs


def _retimed(run: BoardRun, entry: BoardEntry, target: float) -> BoardRun:
    """The run with its time to another target; energy goes with the time."""
    time_s = time_to(entry.courses.get(str(run.job), []), target)
    energy_j = run.power_w * time_s if run.power_w and time_s is not None else None
    changed = {"time_to_target_s": time_s, "energy_to_target_j": energy_j}
    return BoardRun.from_json(run.as_json() | changed)


def _baseline_id(
    board: Board, entries: Sequence[BoardEntry], runs: Mapping[int, list[BoardRun]], asked: Asked
) -> int | None:
    """The entry asked for, else the board's own, else the oldest, each only where it has runs to be held against."""
    for wanted in (asked.baseline, board.baseline_id):
        if wanted is not None and runs.get(wanted):
            return wanted
    return min((entry.pk for entry in entries if runs[entry.pk]), default=None)


def repeats_of(runs: Sequence[BoardRun], name: str) -> Repeats:
    """A figure of each run by its seed; one that never reached the target counts as infinite."""
    values = [(run.seed, math.inf if _has_missed(run, name) else getattr(run, name)) for run in runs]
    return [(seed, value) for seed, value in values if value is not None]


def _has_missed(run: BoardRun, name: str) -> bool:
    """Whether the figure is one to the target, was looked at, and the run never reached that."""
    is_measured = name == TIME_TO_TARGET or (name == ENERGY_TO_TARGET and run.power_w is not None)
    return is_measured and run.has_course and run.time_to_target_s is None


def _row(
    entry: BoardEntry,
    runs: list[BoardRun],
    baseline: list[BoardRun],
    base: BoardEntry | None,
    margin: float | None,
    metric: BoardMetric,
) -> BoardRow:
    is_baseline = entry == base
    loss = None if is_baseline or margin is None else _compared(runs, baseline, margin, _num_diverged(entry, base))
    ratio = None if is_baseline else _ratio(runs, baseline, metric.name)
    times = ratio if is_baseline or metric.name == FIRST_METRIC else _ratio(runs, baseline, FIRST_METRIC)
    return BoardRow(
        entry=entry,
        runs=runs,
        configuration=configuration(entry.configuration),
        standing=_standing(runs, baseline, loss, is_baseline=is_baseline),
        rank=None,
        is_tie=False,
        cells={name: cell_of(repeats_of(runs, name)) for name in (*METRICS, LOSS)},
        ratio=ratio,
        verdict=judge(ratio, lower_is_better=metric.lower_is_better),
        is_faster=judge(times, lower_is_better=True) is Verdict.BETTER,
        loss=loss,
        outcomes={name: count for name, count in entry.outcomes.items() if name != Outcome.SUCCEEDED},
        num_runs=sum(entry.outcomes.values()),
    )


def _compared(
    runs: list[BoardRun], baseline: list[BoardRun], margin: float, num_diverged: int
) -> LossComparison | None:
    return compare_losses(seed_differences(repeats_of(runs, LOSS), repeats_of(baseline, LOSS)), margin, num_diverged)


def _num_diverged(entry: BoardEntry, base: BoardEntry | None) -> int:
    """How many of its runs diverged where none of the baseline's did: the others were chosen by their loss."""
    others: int = base.outcomes.get(Outcome.DIVERGED, 0) if base else 0
    own: int = entry.outcomes.get(Outcome.DIVERGED, 0)
    return 0 if others else own


def _ratio(runs: list[BoardRun], baseline: list[BoardRun], name: str) -> RatioInterval | None:
    return ratio_to(repeats_of(runs, name), repeats_of(baseline, name))


def _standing(
    runs: list[BoardRun], baseline: list[BoardRun], loss: LossComparison | None, *, is_baseline: bool
) -> Standing:
    if is_baseline:
        return Standing.BASELINE
    if not runs:
        return Standing.FAILED
    if not repeats_of(baseline, LOSS):
        return Standing.UNGATED
    return {
        LossVerdict.EQUAL: Standing.EQUAL,
        LossVerdict.BETTER: Standing.BETTER,
        LossVerdict.WORSE: Standing.WORSE,
        LossVerdict.INSUFFICIENT: Standing.INSUFFICIENT,
    }[loss.verdict if loss else LossVerdict.INSUFFICIENT]


def cell_of(repeats: Repeats) -> Cell:
    """Median, interval and n of what was measured."""
    values = [value for _seed, value in repeats]
    if not values:
        return Cell(None, None, None, 0)
    low, high = repeats_interval(values) or (None, None)
    return Cell(median(values), low, high, len(values), sum(map(math.isinf, values)))


def _in_places(rows: list[BoardRow], metric: BoardMetric, *, ranks_all: bool) -> list[BoardRow]:
    """Those that rank with their places, then those that do not in the same order, then what never ended well."""
    ordered = sorted(rows, key=lambda row: _order(row, metric))
    ranking = [row for row in ordered if _may_rank(row, metric, ranks_all=ranks_all)]
    places = share_places(
        [repeats_of(row.runs, metric.name) for row in ranking], lower_is_better=metric.lower_is_better
    )
    placed = [replace(row, rank=place.rank, is_tie=place.is_shared) for row, place in zip(ranking, places, strict=True)]
    chosen = {row.entry.pk for row in ranking}
    return [*placed, *(row for row in ordered if row.entry.pk not in chosen)]


def _may_rank(row: BoardRow, metric: BoardMetric, *, ranks_all: bool) -> bool:
    is_measured = row.cells[metric.name].n > 0
    return is_measured and (ranks_all or row.standing.may_rank)


def _order(row: BoardRow, metric: BoardMetric) -> tuple[bool, float, int]:
    repeats = repeats_of(row.runs, metric.name)
    if not repeats:
        return True, 0.0, row.entry.pk
    middle = middle_of(repeats)
    return False, middle if metric.lower_is_better else -middle, row.entry.pk


def _columns(rows: Sequence[BoardRow]) -> list[Column]:
    return [
        Column(name, option_title(name))
        for name in fields_with_role(Role.CONFIGURATION)
        if len({json.dumps(row.configuration[name]) for row in rows}) > 1
    ]
