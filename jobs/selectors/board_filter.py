"""What a board is narrowed to, in the words of the runs list: any option, who made the runs, and when they ended."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from operator import ge, gt, le, lt
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext

from jobs.board_runs import BoardRun
from jobs.contract.options import Role
from jobs.contract.spec import fields_with_role
from jobs.models import User
from jobs.selectors.run_query import ME, RunQuery, Term, parse_query

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
_OF_RUNS = ("owner", "ended", "age", "seed")


@dataclass(frozen=True)
class BoardFilter:
    """A query's terms, sorted into those of configurations and those of runs."""

    query: RunQuery
    problems: tuple[str, ...]
    user: User

    @classmethod
    def of(cls, text: str, user: User) -> "BoardFilter":
        """Read a text; what a board cannot be narrowed by is told in a sentence, and then nothing is left."""
        query = parse_query(text)
        unknown = [term.text for term in query.terms if not _is_known(term)]
        sentence = gettext("A board is narrowed by its options, by owner, ended, age and seed; not by “%(term)s”.")
        return cls(query, (*query.problems, *(sentence % {"term": term} for term in unknown)), user)

    @property
    def narrows_runs(self) -> bool:
        """Whether it looks at runs, and not only at configurations."""
        return any(term.field and term.field.name in _OF_RUNS for term in self.query.terms)

    def allows(self, configuration: Mapping[str, Any]) -> bool:
        """Whether a configuration is looked at."""
        if self.problems:
            return False
        own = [term for term in self.query.terms if term.field and term.field.name not in _OF_RUNS]
        return all(_holds(term, _plain(configuration.get(term.field.name))) for term in own if term.field)

    def allows_run(self, run: BoardRun) -> bool:
        """Whether a run is looked at."""
        terms = [term for term in self.query.terms if term.field and term.field.name in _OF_RUNS]
        return all(self._run_holds(term, run) for term in terms)

    def _run_holds(self, term: Term, run: BoardRun) -> bool:
        name = term.field.name if term.field else ""
        if name == "owner":
            names = [self.user.get_username() if value == ME else value for value in term.values]
            return _holds(Term(term.field, term.sign, tuple(names), term.text), run.owner)
        if name == "seed":
            return _holds(term, float(run.seed))
        ended_at = datetime.fromisoformat(run.ended_at)
        if name == "age":
            return _COMPARE[term.sign](timezone.now() - ended_at, term.values[0])
        return _at(term, ended_at)


def _is_known(term: Term) -> bool:
    known = (*fields_with_role(Role.CONFIGURATION), *_OF_RUNS)
    return term.field is not None and term.field.name in known


def _plain(value: Any) -> Any:
    """A value as a query's terms hold it: numbers and flags as floats."""
    return float(value) if isinstance(value, int | float) else value


def _holds(term: Term, value: Any) -> bool:
    if term.sign == ":":
        return any(value == wanted for wanted in term.values)
    if term.sign == "!=":
        return all(value != unwanted for unwanted in term.values)
    if term.sign == "~":
        return str(term.values[0]).lower() in str(value or "").lower()
    return value is not None and _COMPARE[term.sign](value, term.values[0])


def _at(term: Term, moment: datetime) -> bool:
    """A date stands for all moments of its day, as in the list of runs."""
    if term.sign in (":", "!="):
        is_within = any(start <= moment < end for start, end in (value for value in term.values if value))
        return is_within if term.sign == ":" else not is_within
    start, end = term.values[0]
    held: dict[str, bool] = {"<": moment < start, "<=": moment < end, ">": moment >= end, ">=": moment >= start}
    return held[term.sign]
