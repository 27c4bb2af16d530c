"""Smoothing of a series: weighted means over earlier points, or over those around.

Each is a ratio of two filtered series, the values' and that of their weights, so that the ends are not drawn towards
zero (for the exponential mean this is Adam's debiasing, arXiv:1412.6980) and values that are not finite are left out;
where a value is not finite, the result is NaN, so that the line still breaks there.
"""

from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache

import numpy as np

from jobs.curves import Floats

_BLOCK = 64  # points that the exponential filter takes at once
_REACH = 4  # standard deviations of a Gaussian that count


class Smoothing(StrEnum):
    """How a curve is smoothed."""

    NONE = "none"
    EXPONENTIAL = "ema"
    GAUSSIAN = "gaussian"
    RUNNING_MEAN = "mean"


# What each one's amount may be, and where it begins: a weight of the past, or a width in points.
LIMITS: dict[Smoothing, tuple[float, float, float]] = {
    Smoothing.EXPONENTIAL: (0.0, 0.9999, 0.9),
    Smoothing.GAUSSIAN: (0.5, 10_000, 10),
    Smoothing.RUNNING_MEAN: (1, 100_000, 20),
}


def smooth(values: Floats, how: Smoothing, amount: float) -> Floats:
    """The smoothed series, as long as `values`.

    `amount` is the weight of the past (0 to below 1) of an exponential mean, the standard deviation in points of a
    Gaussian, the number of points of a running mean (of a point and those before it).
    """
    if how is Smoothing.NONE or not len(values):
        return values
    finite = np.isfinite(values)
    filtered = _FILTERS[how](np.where(finite, values, 0.0), amount)
    if how is Smoothing.EXPONENTIAL and finite.all():  # then the weights have a closed form
        return filtered / (1 - amount ** np.arange(1, len(values) + 1))
    weights = _FILTERS[how](finite.astype(np.float64), amount)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(finite, filtered / weights, np.nan)


def _exponential(values: Floats, weight: float) -> Floats:
    """s[i] = weight * s[i-1] + (1 - weight) * v[i] from s = 0; blocks as products with a triangle of powers."""
    powers = weight ** np.arange(_BLOCK + 1)
    padded = np.zeros(-(-len(values) // _BLOCK) * _BLOCK)
    padded[: len(values)] = values
    blocks = padded.reshape(-1, _BLOCK) @ _triangle(weight)
    for block, before in zip(blocks[1:], blocks, strict=False):
        block += before[-1] * powers[1:]
    return blocks.reshape(-1)[: len(values)]


@lru_cache(maxsize=16)
def _triangle(weight: float) -> Floats:
    """What each value of a block adds to each sum of the same block."""
    steps = np.arange(_BLOCK)
    distances = np.maximum(steps - steps[:, None], 0)
    return np.asarray(np.where(steps[:, None] <= steps, (1 - weight) * weight**distances, 0.0))


def _gaussian(values: Floats, sigma: float) -> Floats:
    reach = min(int(np.ceil(_REACH * sigma)), len(values))
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    return _convolve(values, kernel / kernel.sum())[reach : reach + len(values)]


def _convolve(values: Floats, kernel: Floats) -> Floats:
    """The full convolution, through Fourier where the kernel is long."""
    if len(kernel) <= 128:
        return np.convolve(values, kernel)
    size = len(values) + len(kernel) - 1
    length = 1 << (size - 1).bit_length()
    return np.fft.irfft(np.fft.rfft(values, length) * np.fft.rfft(kernel, length), length)[:size]


def _running_mean(values: Floats, width: float) -> Floats:
    """Sums over the last `width` points; the ratio of two of them is the mean over as many as there are.

    Each is what its block holds so far and the end of the block before it. A difference of two running totals would be
    off for good behind a value so high that it swallows the others.
    """
    span = max(1, round(width))
    padded = np.zeros(-(-len(values) // span) * span)
    padded[: len(values)] = values
    blocks = padded.reshape(-1, span)
    sums = np.cumsum(blocks, axis=1)
    sums[1:, :-1] += np.cumsum(blocks[:-1, :0:-1], axis=1)[:, ::-1]
    return sums.reshape(-1)[: len(values)]


_FILTERS: dict[Smoothing, Callable[[Floats, float], Floats]] = {
    Smoothing.EXPONENTIAL: _exponential,
    Smoothing.GAUSSIAN: _gaussian,
    Smoothing.RUNNING_MEAN: _running_mean,
}
