"""Curves laid over each other: read at once, put on one axis, smoothed, grouped, cut and thinned for a plot."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeGuard

import numpy as np
from django.utils.translation import gettext

from jobs.curves import Curve, Floats, Ints
from jobs.models import Job
from jobs.selectors.columns import Column, columns_of
from jobs.selectors.curves import lineages, read_pieces, shown_attempts, thin
from jobs.selectors.stored_points import Cut
from jobs.selectors.values import known_spec
from jobs.smoothing import Smoothing, smooth
from jobs.statistics import Band, band_factor

# Points that all lines of a plot share: more cannot be told apart on a screen, and drawing them takes its time.
_POINTS_OF_A_PLOT = 48_000
_POINTS_OF_A_LINE = (240, 2000)

# Points of a mean where the repeats' own points do not agree.
_GRID_POINTS = 2000

_POWER_SERIES = "telemetry.gpu_power_w"


class Axis(StrEnum):
    """What a curve runs over; any other text is the name of a series, joined by step."""

    STEP = "step"
    SAMPLES = "samples"
    TOKENS = "tokens"
    WALL = "wall_s"  # seconds of training since the first step began
    CLOCK = "time"  # milliseconds since 1970, UTC
    ENERGY = "energy_j"  # what the GPUs had taken, from their power over time


@dataclass(frozen=True)
class View:
    """What of the curves is to be seen. `x_from` and `x_to` are in the units of the axis."""

    series: str = "train_loss"
    x: str = Axis.STEP
    x_from: float | None = None
    x_to: float | None = None
    smoothing: Smoothing = Smoothing.NONE
    amount: float = 0.0
    group: str = ""
    legend: str = ""
    band: Band = Band.STANDARD_DEVIATION
    max_points: int | None = None

    @property
    def is_cut(self) -> bool:
        """Whether a part of the axis is asked for."""
        return self.x_from is not None or self.x_to is not None


@dataclass(frozen=True)
class Stored:
    """One job's curve as it was read, maybe at a coarser level."""

    curve: Curve
    num_points_total: int  # in the range, before any thinning
    seams: list[int]  # last steps taken from an attempt before another went on
    has_lost_points: bool  # of an old run: only the lowest and the highest of every few are kept


@dataclass(frozen=True)
class Track:
    """One job's curve on the axis of the plot; arrays are equally long."""

    steps: Ints
    wall_s: Floats
    x: Floats
    y: Floats
    raw: Floats  # as recorded, where `y` is smoothed


@dataclass(frozen=True)
class Line:
    """A line of the plot; `low` and `high` are its band, `raw_x` and `raw_y` what was smoothed. May be empty."""

    column: Column
    x: list[float]
    y: list[float]
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    raw_x: list[float] = field(default_factory=list)
    raw_y: list[float] = field(default_factory=list)
    seams: list[float] = field(default_factory=list)  # where an attempt went on from an earlier one's checkpoint
    num_points_total: int = 0
    thinned_jobs: list[int] = field(default_factory=list)  # those of which single points were dropped for good


@dataclass(frozen=True)
class Overlay:
    """All lines of a plot in the order of their columns; `notes` say, by its id, why a job has none."""

    view: View
    lines: list[Line]
    notes: dict[int, str]


def overlay(jobs: Sequence[Job], view: View) -> Overlay:
    """Lay the jobs' curves over each other. As many queries for all of them as for one; twice as many join a series.

    Jobs should come with their last attempts, owners and teams (`visible_jobs`).
    """
    stored = _read(jobs, view)
    tracks = _tracks(jobs, stored, view)
    most = view.max_points or _most_points(len(jobs))
    columns = columns_of(jobs, view.group, view.legend)
    lines = [_line(column, tracks, stored, view, most) for column in columns]
    notes = {job.pk: _note(job, stored, tracks, view) for job in jobs}
    return Overlay(view, lines, {pk: note for pk, note in notes.items() if note})


def _most_points(num_lines: int) -> int:
    least, most = _POINTS_OF_A_LINE
    return max(least, min(most, _POINTS_OF_A_PLOT // max(1, num_lines)))


# ------------------------------------------------------------------ reading


def _read(jobs: Sequence[Job], view: View) -> dict[int, Stored]:
    """The curves by their jobs' ids: whole where they are smoothed, averaged or joined, else as fine as is seen."""
    most = view.max_points or _most_points(len(jobs))
    if _needs_all(view):
        return _stored(jobs, view.series, Cut())
    if view.x == Axis.STEP:
        return _stored(jobs, view.series, Cut(_floor(view), _ceil(view), most))
    coarse = _stored(jobs, view.series, Cut(max_points=most))
    if not view.is_cut:
        return coarse
    cuts = _cuts_seen(jobs, coarse, view, 4 * most)
    first = min((cut.x_from for cut in cuts.values() if cut.x_from is not None), default=None)
    last = max((cut.x_to for cut in cuts.values() if cut.x_to is not None), default=None)
    return _stored(jobs, view.series, Cut(first, last, 4 * most), cuts)


def _stored(jobs: Sequence[Job], series: str, cut: Cut, own_cuts: Mapping[int, Cut] | None = None) -> dict[int, Stored]:
    """A series of all jobs that have an attempt, by their ids; `own_cuts` are by attempt and within `cut`."""
    lines = lineages([attempt for job in jobs for attempt in shown_attempts(job)])
    pieces = read_pieces(lines, series, cut, own_cuts)
    found = {}
    for job in jobs:
        if job.last_attempt_id in pieces:
            piece, line = pieces[job.last_attempt_id], lines[job.last_attempt_id]
            seams = [stretch.last_step for stretch in line if stretch.last_step is not None]
            found[job.pk] = Stored(piece.curve, piece.num_stored, seams, piece.has_lost_points)
    return found


def _needs_all(view: View) -> bool:
    is_joined = view.x not in list(Axis) or view.x == Axis.ENERGY
    return bool(view.group) or is_joined or view.smoothing is not Smoothing.NONE


def _floor(view: View) -> int | None:
    return None if view.x_from is None else int(np.floor(view.x_from))


def _ceil(view: View) -> int | None:
    return None if view.x_to is None else int(np.ceil(view.x_to))


def _cuts_seen(jobs: Sequence[Job], stored: dict[int, Stored], view: View, most: int) -> dict[int, Cut]:
    """By attempt, the steps between which what is seen of it lies, from the coarse curves; a point more on either side.

    Each has its own: where runs follow one another in time, what is seen of one lies nowhere near another's steps.
    """
    cuts = {}
    for job in jobs:
        curve = stored[job.pk].curve if job.pk in stored else None
        x = _axis_values(job, curve, view.x, {}) if curve and len(curve) else None
        if curve is None or x is None or job.last_attempt_id is None:
            continue
        first = 0 if view.x_from is None else int(np.searchsorted(x, view.x_from)) - 1
        last = len(x) - 1 if view.x_to is None else int(np.searchsorted(x, view.x_to, side="right"))
        ends = int(curve.steps[max(0, first)]), int(curve.steps[min(len(x) - 1, last)])
        cuts[job.last_attempt_id] = Cut(*ends, most)
    return cuts


# ---------------------------------------------------------------- the axis


def _tracks(jobs: Sequence[Job], stored: dict[int, Stored], view: View) -> dict[int, Track]:
    """The jobs' curves on the axis; a job for which the axis is not known is missing."""
    joined = _joined(jobs, view)
    tracks = {}
    for job in jobs:
        curve = stored[job.pk].curve if job.pk in stored else None
        x = _axis_values(job, curve, view.x, joined) if curve and len(curve) else None
        if curve is not None and x is not None:
            y = smooth(curve.values, view.smoothing, view.amount)
            tracks[job.pk] = Track(curve.steps, curve.wall_s, x, y, curve.values)
    return tracks


def _joined(jobs: Sequence[Job], view: View) -> dict[int, Curve]:
    """By their jobs' ids, the curves that the axis needs beside those that are shown."""
    if view.x in list(Axis) and view.x != Axis.ENERGY:
        return {}
    stored = _stored(jobs, _POWER_SERIES if view.x == Axis.ENERGY else view.x, Cut())
    return {pk: found.curve for pk, found in stored.items()}


def _axis_values(job: Job, curve: Curve, axis: str, joined: dict[int, Curve]) -> Floats | None:
    """Where each point stands on the axis; None where that cannot be told for this job."""
    steps = curve.steps.astype(np.float64)
    if axis == Axis.STEP:
        return steps
    if axis == Axis.WALL:
        return curve.wall_s
    if axis in (Axis.SAMPLES, Axis.TOKENS):
        each = _samples_per_step(job) * (1.0 if axis == Axis.SAMPLES else _tokens_per_sample(job))
        return steps * each if each else None
    if axis == Axis.CLOCK:
        began_ms = _began_ms(job, curve)
        return None if began_ms is None else began_ms + 1000 * curve.wall_s
    other = joined.get(job.pk)
    if other is None or not len(other.steps):
        return None
    return _energy_at(other, curve.wall_s) if axis == Axis.ENERGY else value_at(other, curve.steps)


def _samples_per_step(job: Job) -> float:
    spec = known_spec(job)
    return float(spec["micro_batch_size"] * spec["grad_accum_steps"] * spec["num_devices"])


def _tokens_per_sample(job: Job) -> float:
    """From what was asked for, else from the two throughputs that were measured; 0 where neither tells."""
    asked = known_spec(job).get("sequence_length")
    summary = job.last_attempt.summary if job.last_attempt else {}
    samples, tokens = summary.get("samples_per_s"), summary.get("tokens_per_s")
    if asked:
        return float(asked)
    return float(round(tokens / samples)) if _is_positive(samples) and _is_positive(tokens) else 0.0


def _is_positive(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and value > 0


def _began_ms(job: Job, curve: Curve) -> float | None:
    """When the first step began: the run was accepted before the model was built. A resumed run counts from its own."""
    attempt = job.last_attempt
    if attempt is None or attempt.running_at is None:
        return None
    build_s = attempt.summary.get("build_s")
    own = curve.wall_s[curve.steps > (attempt.resumed_at_step or 0)]
    before_s = float(own[0]) if attempt.resumed_at_step and len(own) else 0.0
    return 1000 * (attempt.running_at.timestamp() + (build_s if _is_positive(build_s) else 0) - before_s)


def value_at(curve: Curve, steps: Ints) -> Floats:
    """The series' last value at or before each step; NaN before its first."""
    if not len(curve.steps):
        return np.full(len(steps), np.nan)
    places = np.searchsorted(curve.steps, steps, side="right") - 1
    return np.where(places >= 0, curve.values[np.maximum(places, 0)], np.nan)


def _energy_at(power: Curve, wall_s: Floats) -> Floats:
    """Joules taken until each moment: the power's integral by trapezoids at its samples, level before and after."""
    watts = np.where(np.isfinite(power.values), power.values, 0.0)
    times = np.concatenate([[0.0], power.wall_s])
    levels = np.concatenate([watts[:1], watts])
    joules = np.concatenate([[0.0], np.cumsum(np.diff(times) * (levels[1:] + levels[:-1]) / 2)])
    after: Floats = np.maximum(wall_s - times[-1], 0) * levels[-1]
    within: Floats = np.interp(wall_s, times, joules)
    return within + after


# --------------------------------------------------------------- the lines


def _line(column: Column, tracks: dict[int, Track], stored: dict[int, Stored], view: View, most: int) -> Line:
    own = [tracks[pk] for pk in column.job_ids if pk in tracks]
    total = sum(stored[pk].num_points_total for pk in column.job_ids if pk in tracks)
    if not own:
        return Line(column, [], [])
    if view.group:
        line = _mean_line(column, own, view, most)
    else:
        line = _single_line(column, own[0], stored[column.job_ids[0]].seams, view, most)
    thinned = [pk for pk in column.job_ids if pk in tracks and stored[pk].has_lost_points]
    return replace(line, num_points_total=total, thinned_jobs=thinned)


def _single_line(column: Column, track: Track, steps: Sequence[int], view: View, most: int) -> Line:
    inside = _inside(track.x, view)
    x, y, raw = track.x[inside], track.y[inside], track.raw[inside]
    kept = _kept(y, most)
    seams = [float(track.x[place - 1]) for step in steps if 0 < (place := _after(track, step)) < len(track.x)]
    line = Line(column, _plain(x[kept], view), y[kept].tolist(), seams=seams)
    if view.smoothing is Smoothing.NONE:
        return line
    behind = _kept(raw, most)
    return replace(line, raw_x=_plain(x[behind], view), raw_y=raw[behind].tolist())


def _plain(x: Floats, view: View) -> list[float]:
    """What is counted as whole numbers, which travel in fewer characters; another series keeps all its digits."""
    if view.x in (Axis.STEP, Axis.SAMPLES, Axis.TOKENS):
        return list(np.round(x).astype(np.int64).tolist())
    return list((np.round(x, 6) if view.x in list(Axis) else x).tolist())


def _after(track: Track, step: int) -> int:
    return int(np.searchsorted(track.steps, step, side="right"))


def _inside(x: Floats, view: View) -> Floats | Ints:
    """Indices of the points in the range that is seen; all of them where the whole axis is."""
    inside = np.ones(len(x), dtype=bool)
    if view.x_from is not None:
        inside &= x >= view.x_from
    if view.x_to is not None:
        inside &= x <= view.x_to
    return np.flatnonzero(inside)


def _kept(values: Floats, most: int) -> Ints:
    return thin(values, most) if len(values) > most else np.arange(len(values))


def _mean_line(column: Column, tracks: Sequence[Track], view: View, most: int) -> Line:
    """Mean and band of repeats: at the same wall time on that axis, at the same step on every other."""
    keys = [track.wall_s if view.x == Axis.WALL else track.steps.astype(np.float64) for track in tracks]
    grid = _grid(keys)
    if view.x == Axis.WALL:
        keys = [_closed(key, grid) for key in keys]
    values = np.stack([_at(grid, key, track.y) for key, track in zip(keys, tracks, strict=True)])
    places = np.stack([_at(grid, key, track.x) for key, track in zip(keys, tracks, strict=True)])
    mean, low, high = _band(values, view.band)
    x = grid if view.x == Axis.WALL else _nan_mean(places)
    inside = _inside(x, view)
    kept = inside[_kept(mean[inside], most)]
    line = Line(column, x[kept].tolist(), mean[kept].tolist())
    return replace(line, low=low[kept].tolist(), high=high[kept].tolist()) if len(tracks) > 1 else line


def _grid(keys: Sequence[Floats]) -> Floats:
    """Where the mean is taken: at the repeats' own points where they agree or are few, else evenly."""
    if all(np.array_equal(key, keys[0]) for key in keys[1:]):
        return np.unique(keys[0])
    every = np.unique(np.concatenate(list(keys)))
    return every if len(every) <= _GRID_POINTS else np.linspace(every[0], every[-1], _GRID_POINTS)


def _closed(wall_s: Floats, grid: Floats) -> Floats:
    """Moments of a run, its ends moved onto the grid's where they are nearer than two of its points are.

    Else a mean of repeats would begin and end with those that were looked at some milliseconds earlier or later.
    """
    if len(wall_s) < 2:
        return wall_s
    closed, usual_s = wall_s.copy(), float(np.median(np.diff(wall_s)))
    if wall_s[0] - grid[0] < usual_s:
        closed[0] = grid[0]
    if grid[-1] - wall_s[-1] < usual_s:
        closed[-1] = grid[-1]
    return closed


def _at(grid: Floats, key: Floats, values: Floats) -> Floats:
    """Values at the grid, between points on the straight line, which leads across no point that is not finite.

    NaN outside of what was recorded.
    """
    return np.interp(grid, key, values, left=np.nan, right=np.nan)


def _band(values: Floats, band: Band) -> tuple[Floats, Floats, Floats]:
    """Mean, low and high over the first axis, of as many repeats as have a value at each place."""
    mean = _nan_mean(values)
    known = np.isfinite(values)
    counts = known.sum(axis=0)
    if band is Band.RANGE:
        low, high = np.where(known, values, np.inf).min(axis=0), np.where(known, values, -np.inf).max(axis=0)
        return mean, np.where(counts > 0, low, np.nan), np.where(counts > 0, high, np.nan)
    squares = (np.where(known, values - mean, 0.0) ** 2).sum(axis=0)
    deviation = np.sqrt(squares / np.maximum(counts - 1, 1))
    factors = np.array([band_factor(band, n) for n in range(len(values) + 1)])
    reach = deviation * factors[counts]
    return mean, mean - reach, mean + reach


def _nan_mean(values: Floats) -> Floats:
    known = np.isfinite(values)
    counts = known.sum(axis=0)
    sums = np.where(known, values, 0.0).sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


# --------------------------------------------------------------- in words


def _note(job: Job, stored: dict[int, Stored], tracks: dict[int, Track], view: View) -> str:
    """Why a job has no line; empty where it has one."""
    names = {"job": job.pk, "series": view.series}
    if job.pk in tracks:
        if np.isfinite(tracks[job.pk].raw).any():
            return ""
        return gettext("Job %(job)s recorded only NaN and infinity of “%(series)s”.") % names
    if job.pk in stored and len(stored[job.pk].curve):
        return gettext("Job %(job)s does not tell where its points stand on this axis.") % names
    if job.last_attempt is None:
        if job.has_ended:
            return gettext("Job %(job)s ended before it ran.") % names
        return gettext("Job %(job)s has not started yet.") % names
    if view.is_cut:
        return ""
    if job.has_ended:
        return gettext("Job %(job)s recorded no points of “%(series)s”.") % names
    return gettext("Job %(job)s has not recorded points of “%(series)s” yet.") % names


@dataclass(frozen=True)
class BestStep:
    """Where a series was best for a job, and what another one was then (None where it had no value)."""

    job: Job
    step: int
    best: float
    other: float | None


def at_best_step(jobs: Sequence[Job], series: str, other: str, *, lower_is_better: bool) -> list[BestStep]:
    """For each job that has the first series, `other` at the step where it was best, the first such step."""
    # A coarser level keeps the extremes, so the best step is among few points.
    found = _stored(jobs, series, Cut(max_points=_GRID_POINTS))
    others = _stored(jobs, other, Cut())
    rows = []
    for job in jobs:
        curve = found[job.pk].curve if job.pk in found else None
        if curve is not None and np.isfinite(curve.values).any():
            signed = curve.values if lower_is_better else -curve.values
            place = int(np.argmin(np.where(np.isfinite(signed), signed, np.inf)))
            second = float(value_at(others[job.pk].curve, curve.steps[place : place + 1])[0])
            best = float(curve.values[place])
            rows.append(BestStep(job, int(curve.steps[place]), best, second if np.isfinite(second) else None))
    return rows
