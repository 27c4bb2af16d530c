"""Which jobs the list shows: read from the address, so that a link holds it."""

from dataclasses import dataclass

from django.db.models import Q, QuerySet
from django.http import QueryDict

from jobs.contract.states import ENDED_STATES, OPEN_STATES, Outcome, State
from jobs.models import Job, User

# Words for several states at once, beside each state by its own name.
_STATE_GROUPS: dict[str, tuple[State, ...]] = {
    "open": OPEN_STATES,
    "ended": ENDED_STATES,
    "trouble": tuple(State(outcome) for outcome in Outcome if outcome not in (Outcome.SUCCEEDED, Outcome.CANCELLED)),
}


@dataclass(frozen=True)
class JobFilter:
    """What the list is narrowed to; empty means everything."""

    text: str = ""
    state: str = ""
    model: str = ""
    owner: str = ""  # "me" or empty
    before: int | None = None  # the page holds jobs with smaller ids

    @classmethod
    def from_query(cls, query: QueryDict) -> "JobFilter":
        """Read the address; what is not understood is left out."""
        state, before = query.get("state", ""), query.get("before", "")
        return cls(
            text=query.get("q", "").strip().replace("\0", "")[:200],
            state=state if state in _STATE_GROUPS or state in list(State) else "",
            model=query.get("model", "").replace("\0", "")[:100],
            owner="me" if query.get("owner") == "me" else "",
            before=int(before) if before.isascii() and before.isdigit() and len(before) < 19 else None,
        )

    @property
    def is_set(self) -> bool:
        """Whether anything is narrowed down, pages aside."""
        return bool(self.text or self.state or self.model or self.owner)

    def apply(self, jobs: QuerySet[Job], user: User) -> QuerySet[Job]:
        """The jobs that match, pages aside."""
        if self.text:
            jobs = jobs.filter(_matches(self.text))
        if self.state:
            jobs = jobs.filter(state__in=_STATE_GROUPS.get(self.state, (self.state,)))
        if self.model:
            jobs = jobs.filter(spec__model=self.model)
        return jobs.filter(owner=user) if self.owner else jobs


def _matches(text: str) -> Q:
    """A job by its number, or by a part of its name, data set or owner."""
    number = text.removeprefix("#")
    found = (
        Q(name__icontains=text)
        | Q(spec__model__icontains=text)
        | Q(spec__dataset__icontains=text)
        | Q(owner__username__icontains=text)
    )
    return found | Q(pk=int(number)) if number.isascii() and number.isdigit() and len(number) < 19 else found
