"""Which jobs an address asks to compare."""

from dataclasses import dataclass

from django.http import QueryDict

# More lines than this are a hairball, not a comparison.
MOST_JOBS = 12


@dataclass(frozen=True)
class CompareQuery:
    """Job ids in the order asked for, without doubles; `unreadable` are the parts that are no ids."""

    job_ids: list[int]
    unreadable: list[str]
    series: str
    x: str

    @classmethod
    def from_query(cls, query: QueryDict) -> "CompareQuery":
        """Read `jobs` (repeated or separated by commas), `series` and `x`."""
        parts = [part.strip() for value in query.getlist("jobs") for part in value.split(",") if part.strip()]
        ids = dict.fromkeys(int(part) for part in parts if _is_id(part))
        return cls(
            job_ids=list(ids),
            unreadable=[part for part in parts if not _is_id(part)],
            series=query.get("series") or "train_loss",
            x="wall_s" if query.get("x") == "wall_s" else "step",
        )


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19
