"""Searches: who sees them, what their runs say so far, what they have cost, and what they found."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from jobs.contract.states import OPEN_STATES, Outcome
from jobs.equal_loss import LossComparison, with_margin
from jobs.models import Attempt, Job, Search, Study, User
from jobs.models.search import OPEN_STAGES
from jobs.needed_memory import fits, needed_bytes
from jobs.search import Costs
from jobs.search_points import Point, Trial
from jobs.selectors.jobs import teams_of
from jobs.selectors.studies import StudyRow, StudyView, counted_runs, view_study
from jobs.statistics import Verdict

_MANY_POINTS = 60  # from there on the finals have room for two


@dataclass(frozen=True)
class Spent:
    """Device-seconds: what the search took, and what the full grid would take, told from what ran so far."""

    used_s: float
    grid_s: float | None

    @property
    def share(self) -> float | None:
        """Of the grid's."""
        return self.used_s / self.grid_s if self.grid_s else None

    @property
    def percent(self) -> float | None:
        """The same in hundredths."""
        return None if self.share is None else 100 * self.share


@dataclass(frozen=True)
class ScreenedPoint:
    """A configuration that was screened: its changes, and why it is out of the race where it is."""

    changes: dict[str, Any]
    jobs: list[Job]
    step_time_ms: float | None
    num_repeats: int
    peak_bytes: float | None
    is_out: bool
    is_finalist: bool


@dataclass(frozen=True)
class Finalist:
    """A row of the finals, the base among them, with its loss judged by the search's own margin."""

    row: StudyRow
    changes: dict[str, Any]  # about the base of the search
    loss: LossComparison | None
    fits: bool  # or none of its runs has ended well yet

    @property
    def is_base(self) -> bool:
        """Whether it is the base of the search; it need not be what the finals are held against."""
        return not self.changes

    @property
    def is_out(self) -> bool:
        """Whether it does not fit, or none of its runs ended well."""
        return not self.fits or (self.row.step_time_ms is None and self.row.num_done == len(self.row.jobs))

    @property
    def may_be_named(self) -> bool:
        """Whether it fits and its loss is as good; what the others are held against has none to be held against."""
        has_ended = self.row.step_time_ms is not None
        return self.fits and has_ended and (self.row.is_baseline or bool(self.loss and self.loss.verdict.may_rank))

    @property
    def is_shown_faster(self) -> bool:
        """Than what the finals are held against."""
        return self.row.time_verdict is Verdict.BETTER


@dataclass(frozen=True)
class SearchView:
    """A search with everything that its page shows."""

    search: Search
    screened: list[ScreenedPoint]  # the fastest first, those that are out behind
    finals: StudyView | None
    finalists: list[Finalist]
    base_is_out: bool  # it does not fit, or did not run to its end
    spent: Spent

    @property
    def best(self) -> Finalist | None:
        """The fastest that fits at equal loss; it must be shown to be faster than the base where that fits too.

        None where none is, or while it goes on.
        """
        if self.search.is_open:
            return None
        able = [one for one in self.finalists if one.may_be_named and not one.is_base]
        found = [one for one in able if self.base_is_out or one.is_shown_faster]
        return min(found, key=lambda one: one.row.step_time_ms or 0.0, default=None)

    @property
    def reference(self) -> Finalist | None:
        """What the finalists are held against: the base, unless it did not run."""
        return next((one for one in self.finalists if one.row.is_baseline), None)

    @property
    def num_tried(self) -> int:
        """Configurations of which a run has ended."""
        return sum(bool(point.num_repeats) or point.is_out for point in self.screened)

    @property
    def has_tried_combinations(self) -> bool:
        """Whether values of several axes were tried together, as far as there are any."""
        axes = [sum(place != 0 for place in point) for point in self.search.points]
        return len(self.search.axes) < 2 or max(axes, default=0) > 1


def visible_searches(user: User) -> QuerySet[Search]:
    """The searches of the user's teams, newest first."""
    searches = Search.objects.select_related("owner", "team", "queue", "screening", "finals")
    return searches if user.is_staff else searches.filter(team__in=teams_of(user))


def may_change_search(user: User, search: Search) -> bool:
    """Whether the person may stop it: its owner, and staff."""
    return user.is_staff or search.owner_id == user.pk


def open_searches() -> QuerySet[Search]:
    """Those that may have a round to queue or to judge: none of their runs is open."""
    searches = Search.objects.filter(stage__in=OPEN_STAGES).select_related("owner", "team", "queue")
    for study in ("screening", "finals"):
        searches = searches.exclude(Exists(Job.objects.filter(study=OuterRef(study), state__in=OPEN_STATES)))
    return searches.order_by("pk")


def runs_of(search: Search) -> dict[int, list[Job]]:
    """The jobs of the screening by the place of their point."""
    jobs: dict[int, list[Job]] = defaultdict(list)
    for job in (
        Job.objects.filter(study=search.screening_id).exclude(study=None).select_related("last_attempt").order_by("pk")
    ):
        jobs[job.study_place or 0].append(job)
    return jobs


def trials_of(search: Search) -> list[Trial]:
    """What is known of every point that was run or left out."""
    jobs = runs_of(search)
    ran = [_trial(search, tuple(point), jobs[place]) for place, point in enumerate(search.points)]
    return [*ran, *(Trial(tuple(entry["point"]), is_out=True) for entry in search.left_out)]


def costs_of(search: Search) -> Costs:
    """What runs cost, as far as those that have ended tell: no less than by their steps alone, for runs must start."""
    base = search.stored_base.spec
    short = search.short_steps / (base.num_steps or search.short_steps)
    walls = [
        _walls(search, job.last_attempt) for group in runs_of(search).values() for job in group if job.last_attempt
    ]
    known = [wall for wall in walls if wall]
    if known:
        short = max(short, sum(wall for wall, _full in known) / sum(full for _wall, full in known))
    return Costs(search.num_repeats, short, 2 if search.space.num_points >= _MANY_POINTS else 1)


def view_search(search: Search) -> SearchView:
    """Everything that its page shows."""
    jobs = runs_of(search)
    finals = view_study(search.finals) if search.finals else None
    needed = _needed_by_run(search.finals) if search.finals else {}
    finalists = [_finalist(search, row, needed) for row in finals.rows] if finals else []
    chosen = [one.changes for one in finalists if not one.is_base]
    screened = [_screened(search, tuple(point), jobs[place], chosen) for place, point in enumerate(search.points)]
    return SearchView(
        search=search,
        screened=sorted(screened, key=lambda one: (one.is_out, one.step_time_ms is None, one.step_time_ms or 0.0)),
        finals=finals,
        finalists=finalists,
        base_is_out=any(point.is_out for point in screened if not point.changes)
        or any(one.is_out for one in finalists if one.is_base),
        spent=_spent(search, [job for group in jobs.values() for job in group], finals),
    )


def _trial(search: Search, point: Point, jobs: Sequence[Job]) -> Trial:
    ended = [job for job in jobs if job.has_ended and job.outcome != Outcome.CANCELLED]
    attempts = [job.last_attempt for job in ended if job.outcome == Outcome.SUCCEEDED and job.last_attempt]
    times = [time_ms for run in attempts if (time_ms := _step_time_ms(run))]
    is_too_large = not all(fits(needed_bytes(run.measured), search.memory_budget_bytes) for run in attempts)
    num_failed = len(ended) - len(times)
    num_lost = sum(job.outcome == Outcome.LOST for job in ended)  # with its host, which says nothing of the point
    is_out = is_too_large or num_failed > num_lost or (num_lost > 0 and not times)
    return Trial(point, times, is_out=is_out, num_failed=num_failed)


def _step_time_ms(run: Attempt) -> float | None:
    """None where it was not measured, or is nothing that can be compared."""
    time_ms = run.steady_step_time_ms
    return time_ms if time_ms and math.isfinite(time_ms) else None


def _screened(search: Search, point: Point, jobs: list[Job], finalists: list[dict[str, Any]]) -> ScreenedPoint:
    trial = _trial(search, point, jobs)
    changes = search.space.changes(point)
    peaks = [peak for job in jobs if job.last_attempt and (peak := needed_bytes(job.last_attempt.measured))]
    return ScreenedPoint(
        changes=changes,
        jobs=jobs,
        step_time_ms=fmean(trial.times_ms) if trial.times_ms else None,
        num_repeats=len(trial.times_ms),
        peak_bytes=max(peaks, default=None),
        is_out=trial.is_out,
        is_finalist=changes in finalists,
    )


def _needed_by_run(finals: Study) -> dict[int, float | None]:
    """What each run of the finals needed, by its attempt; a study's view leaves summaries unread."""
    runs = Attempt.objects.filter(job__study=finals, outcome=Outcome.SUCCEEDED).only("summary")
    return {run.pk: needed_bytes(run.measured) for run in runs}


def _finalist(search: Search, row: StudyRow, needed: Mapping[int, float | None]) -> Finalist:
    sizes = [size for run in counted_runs(row.jobs).values() if (size := needed.get(run.pk)) is not None]
    does_fit = row.step_time_ms is None or fits(median(sizes) if sizes else None, search.memory_budget_bytes)
    loss = with_margin(row.loss, search.loss_margin) if row.loss and search.loss_margin else row.loss
    base = search.stored_base.spec.model_dump(mode="json")
    spec = row.configuration.spec.model_dump(mode="json")
    changes = {name: value for name, value in spec.items() if value != base[name]}
    return Finalist(row, changes, loss, does_fit)


def _spent(search: Search, screening: Sequence[Job], finals: StudyView | None) -> Spent:
    final_jobs = [job for row in finals.rows for job in row.jobs] if finals else []
    used = sum(_device_s(job) for job in [*screening, *final_jobs])
    walls = [_walls(search, job.last_attempt) for job in screening if job.last_attempt]
    full = [full for wall in walls if wall for _short, full in [wall]]
    num = search.space.num_points - len(search.left_out)
    devices = search.stored_base.spec.num_devices * search.stored_base.spec.num_nodes
    return Spent(used, fmean(full) * devices * num * search.num_repeats if full else None)


def _device_s(job: Job) -> float:
    run = job.last_attempt
    if run is None or run.ended_at is None:
        return 0.0
    wall_s: float = (run.ended_at - run.claimed_at).total_seconds()
    return wall_s * int(job.num_devices) * int(job.num_nodes)


def _walls(search: Search, run: Attempt | None) -> tuple[float, float] | None:
    """Seconds of a screening run, and of the same at full length; None where it did not end well."""
    time_ms = _step_time_ms(run) if run and run.outcome == Outcome.SUCCEEDED else None
    if run is None or run.ended_at is None or time_ms is None:
        return None
    wall = (run.ended_at - run.claimed_at).total_seconds()
    more = (search.stored_base.spec.num_steps or search.short_steps) - search.short_steps
    return wall, wall + more * time_ms / 1000
