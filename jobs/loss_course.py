"""How a training loss fell: when it was first at or below a level, and stayed there.

A level counts as reached where the mean of some points (a twentieth of the curve, ten at most) lies at or below it and
still does for as many points more: a single lucky batch is no crossing. Pure functions of arrays.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from jobs.curves import Curve, Floats

_MOST_POINTS = 10
_SHARE_OF_CURVE = 20
_MOST_LEVELS = 24
# The target is a level that a run of the same kind reaches well before its end, so that times to it can differ.
_TARGET_SHARE = 0.9

Course = list[tuple[float, float]]  # (level, seconds since the first step began), levels falling, times rising


def course_of(curve: Curve) -> Course:
    """The sustained levels that a run reached for the first time, and when; the first one is where it began."""
    num_points = min(_MOST_POINTS, max(1, len(curve) // _SHARE_OF_CURVE))
    if len(curve) < 2 * num_points:
        return []
    values = np.where(np.isfinite(curve.values), curve.values, np.inf)
    means = sliding_window_view(values, num_points).mean(axis=1)
    levels: Floats = sliding_window_view(means, num_points).max(axis=1)
    # Known to be that low at the last point of the window; that it stays so long is known later, and not asked for.
    walls_s = curve.wall_s[num_points - 1 :][: len(levels)]
    is_new = np.concatenate([[True], levels[1:] < np.minimum.accumulate(levels)[:-1]]) & np.isfinite(levels)
    found = list(zip(levels[is_new].tolist(), walls_s[is_new].tolist(), strict=True))
    return [(_rounded(level), _rounded(wall_s)) for level, wall_s in found]


def thinned(course: Course) -> Course:
    """The course in few levels, evenly taken, its first and last among them; later times, never earlier ones."""
    if len(course) <= _MOST_LEVELS:
        return course
    places = np.linspace(0, len(course) - 1, _MOST_LEVELS).round().astype(int)
    return [course[place] for place in places]


def time_to(course: Sequence[Sequence[float]], target: float) -> float | None:
    """Seconds until the loss was at or below the target and stayed there; None where it never did."""
    return next((wall_s for level, wall_s in course if level <= target), None)


def target_of(course: Course) -> float | None:
    """The target that a first run sets: nine tenths of its way down. None where its loss did not fall."""
    if len(course) < 2:
        return None
    first, last = course[0][0], course[-1][0]
    return _rounded(first + _TARGET_SHARE * (last - first))


def _rounded(value: float) -> float:
    """To seven digits, for it is stored as text."""
    return float(f"{value:.7g}") if math.isfinite(value) else value
