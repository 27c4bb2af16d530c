"""What a search goes through: a space of configurations, and what is known of its points."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

Point = tuple[int, ...]  # for each axis the place of its value; all 0 is the base


@dataclass(frozen=True)
class Space:
    """Axes, each with the changes that its values make to the base; the first value of each changes nothing."""

    axes: tuple[tuple[Mapping[str, Any], ...], ...]

    @property
    def sizes(self) -> list[int]:
        """How many values each axis has."""
        return [len(axis) for axis in self.axes]

    @property
    def num_points(self) -> int:
        """Configurations of the full grid."""
        return math.prod(self.sizes)

    @property
    def base(self) -> Point:
        """The configuration that changes nothing."""
        return (0,) * len(self.axes)

    def changes(self, point: Point) -> dict[str, Any]:
        """What a point changes about the base."""
        chosen = (axis[place] for axis, place in zip(self.axes, point, strict=True))
        return {name: value for changes in chosen for name, value in changes.items()}

    def singles(self) -> list[Point]:
        """Each value alone."""
        base = self.base
        return [
            (*base[:axis], place, *base[axis + 1 :]) for axis, size in enumerate(self.sizes) for place in range(1, size)
        ]


@dataclass(frozen=True)
class Trial:
    """What is known of a point: its step times so far, one per repeat; whether it is out of the race."""

    point: Point
    times_ms: list[float] = field(default_factory=list)
    is_out: bool = False  # refused, too large, or it did not end well
    num_failed: int = 0  # runs that did not end well: they cost, and tell no time

    @property
    def log_time(self) -> float:
        """The mean logarithm of its step times."""
        return fmean(math.log(time) for time in self.times_ms)
