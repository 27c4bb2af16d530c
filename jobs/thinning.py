"""Which points of a curve show its shape: chosen, never averaged, so that a spike stays as high as it was."""

import numpy as np
from numpy.typing import NDArray
from tsdownsample import MinMaxDownsampler, MinMaxLTTBDownsampler

from jobs.curves import Floats

Places = NDArray[np.intp]

# A thinned curve keeps both ends and its extremes, so fewer points than this cannot be asked for.
MIN_POINTS = 5

_THINNER = MinMaxLTTBDownsampler()  # type: ignore[no-untyped-call]
_PICKER = MinMaxDownsampler()  # type: ignore[no-untyped-call]


def thin(values: Floats, max_points: int) -> Places:
    """Indices of the points that show the shape of `values`, in order: MinMaxLTTB, arXiv:2305.00332.

    The lowest and the highest point are always among them. Where values are not finite, the ends of each such stretch
    are kept on top of `max_points`, so that a plot breaks where the values did.
    """
    finite = np.flatnonzero(np.isfinite(values))
    breaks = _ends_of_breaks(values)
    if len(finite) <= max_points:
        return np.union1d(finite, breaks)
    chosen = finite[_THINNER.downsample(finite, values[finite], n_out=max_points - 2).astype(np.intp)]
    extremes = finite[[values[finite].argmin(), values[finite].argmax()]]
    return np.union1d(np.concatenate([chosen, extremes]), breaks)


def pick_extremes(values: Floats, max_points: int) -> Places:
    """Indices of the lowest and the highest point of each of `max_points / 2` stretches of equal length, in order.

    Both ends, and those of stretches that are not finite, come on top.
    """
    finite = np.flatnonzero(np.isfinite(values))
    num_picked = max(2, max_points - max_points % 2)
    if len(finite) > num_picked:
        finite = finite[_PICKER.downsample(values[finite], n_out=num_picked).astype(np.intp)]
    ends = np.array([0, len(values) - 1] if len(values) else [], dtype=np.intp)
    return np.union1d(np.concatenate([finite, ends]), _ends_of_breaks(values))


def _ends_of_breaks(values: Floats) -> Places:
    """Indices of the first and last point of each stretch of NaN, of infinity, and of minus infinity."""
    if np.isfinite(values).all():
        return np.empty(0, np.intp)
    kinds = np.select([np.isnan(values), np.isposinf(values), np.isneginf(values)], [1, 2, 3], 0)
    starts = np.diff(kinds, prepend=0) != 0
    ends = np.diff(kinds, append=0) != 0
    return np.flatnonzero((kinds != 0) & (starts | ends))
