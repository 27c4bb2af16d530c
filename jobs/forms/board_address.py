"""What a board's page shows, read from its address, so that a link shows a colleague the same."""

import math
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict

from jobs.models import User
from jobs.selectors.board_filter import BoardFilter
from jobs.selectors.leaderboard import FIRST_METRIC, METRICS, Asked

GIB = 2**30
_MOST_GIB = 2**30  # more than any machine has


@dataclass(frozen=True)
class BoardAddress:
    """The ranking figure, what may rank, the memory budget, the filter, the baseline, the target, how many rows."""

    metric: str = FIRST_METRIC
    ranks_all: bool = False
    budget_gib: float | None = None
    text: str = ""  # the filter, as in the list of runs
    baseline: int | None = None
    target: float | None = None
    shows_all: bool = False  # every row, not only the first ones

    @classmethod
    def from_query(cls, query: QueryDict) -> "BoardAddress":
        """Read the address; what cannot be read is left out."""
        metric = query.get("metric", "")
        budget = _number(query.get("budget", ""))
        baseline = query.get("baseline", "")
        return cls(
            metric=metric if metric in METRICS else FIRST_METRIC,
            ranks_all=query.get("rank") == "all",
            budget_gib=budget if budget is not None and 0 < budget <= _MOST_GIB else None,
            text=query.get("q", "").replace("\0", " ").strip()[:2000],
            baseline=int(baseline) if baseline.isascii() and baseline.isdigit() and len(baseline) < 19 else None,
            target=_number(query.get("target", "")),
            shows_all=query.get("rows") == "all",
        )

    def asked(self, user: User) -> Asked:
        """The same as the selector takes it."""
        return Asked(
            metric=self.metric,
            ranks_all=self.ranks_all,
            budget_bytes=None if self.budget_gib is None else self.budget_gib * GIB,
            baseline=self.baseline,
            target=self.target,
            only=BoardFilter.of(self.text, user) if self.text else None,
        )

    def link(self, **changes: Any) -> str:
        """The address with something changed; None leaves a part out."""
        parts = {name: value for name, value in (self.parts | changes).items() if value not in (None, "")}
        return f"?{urlencode(parts)}" if parts else "?"

    @property
    def parts(self) -> dict[str, Any]:
        """What differs from the plain board."""
        return {
            "metric": self.metric if self.metric != FIRST_METRIC else None,
            "rank": "all" if self.ranks_all else None,
            "budget": _exactly(self.budget_gib),
            "q": self.text,
            "baseline": self.baseline,
            "target": _exactly(self.target),
            "rows": "all" if self.shows_all else None,
        }


def _exactly(value: float | None) -> str | None:
    """The number with every digit that it takes to read it back: a target that is rounded is another target."""
    return None if value is None else repr(value).removesuffix(".0")


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
