"""The text query of the runs list: `model:mlp precision:bf16-mixed outcome:succeeded step_time_ms<5`.

A query is terms that must all hold. A term is a field, a sign and a value (`:` or `=`, `!=`, `<`, `<=`, `>`, `>=`, `~`
for "contains"; several values of `:` with commas mean any of them), or a word that is looked for in names. What is not
understood is told in a sentence, and then nothing is found: a mistyped filter must not select everything.
"""

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.lookups import (
    Exact,
    GreaterThan,
    GreaterThanOrEqual,
    IContains,
    IsNull,
    LessThan,
    LessThanOrEqual,
)
from django.utils import timezone
from django.utils.translation import gettext

from jobs.contract.states import ENDED_STATES, OPEN_STATES, Outcome, State
from jobs.models import Job, JobTag, User
from jobs.selectors.run_fields import Kind, RunField, find_field, known_names

MOST_CHARACTERS = 2000
NONE = "none"
ME = "me"

_TOKEN = re.compile(
    r"""(?P<name>[A-Za-z_]\w*)(?P<sign><=|>=|!=|[:=<>~])(?P<values>(?:"[^"]*"|[^\s"])*)|(?P<word>"[^"]*"|[^\s"]+)"""
)
_VALUE = re.compile(r'"([^"]*)"|([^,]+)')
_AGE = re.compile(r"(\d+(?:\.\d+)?)\s*(min|h|d|w)")
_AGE_UNITS = {"min": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SIZE = re.compile(r"([-+\d.eE]+)\s*(Ki|Mi|Gi|Ti|k|M|G|T)?B?")
_SIZES = {None: 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_FLAGS = {"yes": 1.0, "true": 1.0, "1": 1.0, "no": 0.0, "false": 0.0, "0": 0.0}

_ORDERED = (":", "!=", "<", "<=", ">", ">=")
_SIGNS: dict[Kind, tuple[str, ...]] = {
    Kind.NUMBER: _ORDERED,
    Kind.DATE: _ORDERED,
    Kind.AGE: ("<", "<=", ">", ">="),
    Kind.TEXT: (":", "!=", "~"),
    Kind.PERSON: (":", "!=", "~"),
    Kind.TAG: (":", "!=", "~"),
    Kind.CHOICE: (":", "!="),
    Kind.STATE: (":", "!="),
    Kind.FLAG: (":", "!="),
}
_COMPARE: dict[str, Any] = {"<": LessThan, "<=": LessThanOrEqual, ">": GreaterThan, ">=": GreaterThanOrEqual}
_STATES: dict[str, tuple[State, ...]] = {state.value: (state,) for state in State} | {
    "open": OPEN_STATES,
    "ended": ENDED_STATES,
    "trouble": tuple(State(outcome) for outcome in Outcome if outcome not in (Outcome.SUCCEEDED, Outcome.CANCELLED)),
}


class NotUnderstood(Exception):
    """A part of a query; the text is the sentence for whoever wrote it."""


@dataclass(frozen=True)
class Term:
    """One condition. `field` is None for a word that is looked for in names; None among `values` means "not set"."""

    field: RunField | None
    sign: str
    values: tuple[Any, ...]
    text: str  # as one would write it


@dataclass(frozen=True)
class RunQuery:
    """What a list is narrowed to: all `terms` hold; `problems` say in sentences what was not understood."""

    terms: tuple[Term, ...] = ()
    problems: tuple[str, ...] = ()
    text: str = field(default="")

    def __str__(self) -> str:
        return " ".join(term.text for term in self.terms)

    def without(self, term: Term) -> "RunQuery":
        """The same without one term."""
        return replace(self, terms=tuple(other for other in self.terms if other is not term))

    def given(self, name: str) -> list[str]:
        """The values that one field is narrowed to by `:`."""
        terms = [term for term in self.terms if term.field and term.field.name == name and term.sign == ":"]
        return [str(value) for term in terms for value in term.values]

    def replacing(self, name: str, text: str) -> str:
        """The query's text with one field narrowed to something else; an empty text widens it."""
        kept = [term.text for term in self.terms if not (term.field and term.field.name == name and term.sign == ":")]
        return " ".join([*kept, *([text] if text else [])])

    @property
    def teams(self) -> list[Term]:
        """The terms that name teams: they decide whose lists are read."""
        return [term for term in self.terms if term.field and term.field.name == "team" and term.sign == ":"]

    @property
    def owners(self) -> list[Term]:
        """The terms that name who owns runs: few teams have any of theirs."""
        return [term for term in self.terms if term.field and term.field.name == "owner" and term.sign == ":"]

    def apply(self, jobs: QuerySet[Job], user: User) -> QuerySet[Job]:
        """The jobs for which every term holds, those aside that name teams; none where something is not understood."""
        if self.problems:
            return jobs.none()
        teams = self.teams
        for term in self.terms:
            jobs = jobs if term in teams else jobs.filter(condition(term, user))
        return jobs


def parse_query(text: str) -> RunQuery:
    """The query in a text; whatever is wrong with it is told in its `problems`."""
    text = text.replace("\0", " ")[:MOST_CHARACTERS].strip()
    if text.count('"') % 2:
        return RunQuery(problems=(gettext("A quotation mark is not closed."),), text=text)
    terms, problems = [], []
    for match in _TOKEN.finditer(text):
        try:
            terms.append(_term(match))
        except NotUnderstood as problem:
            problems.append(str(problem))
    return RunQuery(tuple(terms), tuple(dict.fromkeys(problems)), text)


def _term(match: re.Match[str]) -> Term:
    if match["word"]:
        word = match["word"].strip('"')
        return Term(None, "~", (word,), quoted(word) if find_field(word) is None else f'"{word}"')
    found = find_field(match["name"])
    if found is None:
        raise NotUnderstood(_unknown_name(match["name"], match[0]))
    return make_term(found, ":" if match["sign"] == "=" else match["sign"], _split(match["values"]))


def _unknown_name(name: str, token: str) -> str:
    sentence = gettext("There is no field “%(name)s”.") % {"name": name}
    if near := difflib.get_close_matches(name, known_names(), n=1):
        return f"{sentence} {gettext('Did you mean “%(near)s”?') % {'near': near[0]}}"
    hint = gettext("To look for it as a word, put it in quotation marks: %(word)s")
    return f"{sentence} {hint % {'word': quoted(token, always=True)}}"


def _split(text: str) -> list[str]:
    return [quoted_part or plain for quoted_part, plain in _VALUE.findall(text) if quoted_part or plain]


def quoted(text: str, *, always: bool = False) -> str:
    """A value as it is written in a query: in quotation marks where it needs them."""
    text = text.replace('"', "")
    return f'"{text}"' if always or not text or re.search(r"[\s,:=<>~!]", text) else text


def make_term(of: RunField, sign: str, texts: Sequence[str]) -> Term:
    """A term of a field by its values' texts; raises `NotUnderstood` with a sentence."""
    if sign not in _SIGNS[of.kind]:
        raise NotUnderstood(
            gettext("“%(name)s” cannot be compared with “%(sign)s”. Use one of: %(signs)s.")
            % {"name": of.name, "sign": sign, "signs": "  ".join(_SIGNS[of.kind])}
        )
    if not texts:
        raise NotUnderstood(gettext("“%(name)s%(sign)s” lacks a value.") % {"name": of.name, "sign": sign})
    if len(texts) > 1 and sign not in (":", "!="):
        raise NotUnderstood(gettext("“%(name)s%(sign)s” takes one value.") % {"name": of.name, "sign": sign})
    values = tuple(_value(of, text) for text in texts)
    if sign not in (":", "!=") and None in values:
        raise NotUnderstood(
            gettext("“%(name)s” is set or not: ask with %(name)s:none or %(name)s!=none.") % {"name": of.name}
        )
    return Term(of, sign, values, f"{of.name}{sign}{','.join(quoted(text) for text in texts)}")


def _value(of: RunField, text: str) -> Any:
    if text.lower() == NONE and of.can_be_empty:
        return None
    match of.kind:
        case Kind.NUMBER:
            return _number(of, text)
        case Kind.FLAG:
            if text.lower() not in _FLAGS:
                raise NotUnderstood(_no_value(of, text, ("yes", "no")))
            return _FLAGS[text.lower()]
        case Kind.CHOICE | Kind.STATE:
            if text not in of.choices:
                raise NotUnderstood(_no_value(of, text, of.choices))
            return text
        case Kind.DATE:
            return _date(of, text)
        case Kind.AGE:
            return _age(of, text)
    return text


def _number(of: RunField, text: str) -> float:
    match = _SIZE.fullmatch(text)
    try:
        if not match or (match[2] and of.unit != "bytes"):
            raise ValueError
        return float(match[1]) * _SIZES[match[2]]
    except ValueError as error:
        sentence = gettext("“%(name)s” is compared with a number; “%(text)s” is none.")
        raise NotUnderstood(sentence % {"name": of.name, "text": text}) from error


def _no_value(of: RunField, text: str, choices: Sequence[str]) -> str:
    sentence = gettext("“%(text)s” is no value of “%(name)s”. There are: %(choices)s.")
    return sentence % {"text": text, "name": of.name, "choices": ", ".join(choices)}


def _date(of: RunField, text: str) -> tuple[datetime, datetime]:
    """The moments that a date or a time stands for: from the first to before the second."""
    try:
        moment = datetime.fromisoformat(text)
        start = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        length = (
            timedelta(days=1) if len(text) == 10 else timedelta(minutes=1) if len(text) == 16 else timedelta(seconds=1)
        )
        return start, start + length
    except (ValueError, OverflowError) as error:
        sentence = gettext("“%(name)s” is compared with a date such as 2026-11-20; “%(text)s” is none.")
        raise NotUnderstood(sentence % {"name": of.name, "text": text}) from error


def _age(of: RunField, text: str) -> timedelta:
    match = _AGE.fullmatch(text)
    try:
        if match:
            age = timedelta(**{_AGE_UNITS[match[2]]: float(match[1])})
            if timezone.now() - age:  # no time before the year 1
                return age
    except OverflowError:
        pass
    sentence = gettext("“%(name)s” is compared with a time span such as 7d, 12h or 30min; “%(text)s” is none.")
    raise NotUnderstood(sentence % {"name": of.name, "text": text})


# ------------------------------------------------------------------ conditions


def condition(term: Term, user: User) -> Q:
    """What the database is asked for one term."""
    if term.field is None:
        return _has_word(term.values[0])
    if term.sign == "!=":
        return _unless(replace(term, sign=":"), user)
    match term.field.kind:
        case Kind.TAG:
            return _has_tag(term)
        case Kind.STATE:
            states = [state for value in term.values for state in _STATES[value]]
            return Q(state__in=states)
        case Kind.PERSON:
            return _of_person(term, user)
        case Kind.AGE:
            before = {"<": "gt", "<=": "gte", ">": "lt", ">=": "lte"}[term.sign]
            return Q(**{f"created_at__{before}": timezone.now() - term.values[0]})
    return _compared(term, term.field)


def _of_person(term: Term, user: User) -> Q:
    if term.sign == "~":
        return _compared(term, _needed(term))
    return _any_of(term, lambda name: Q(owner=user) if name == ME else Q(owner__username=name))


def _needed(term: Term) -> RunField:
    assert term.field is not None  # noqa: S101 a word has no kind
    return term.field


def _unless(term: Term, user: User) -> Q:
    """Not so, or not known."""
    none_of, of = ~condition(term, user), _needed(term)
    if of.expression is None or None in term.values or not of.can_be_empty:
        return none_of
    return none_of | Q(IsNull(of.expression, True))


def _compared(term: Term, of: RunField) -> Q:
    if term.sign == "~":
        return Q(IContains(of.expression, term.values[0]))
    if of.kind is Kind.DATE:
        return _any_of(term, lambda moments: _at(of, term.sign, moments))
    if term.sign == ":":
        return _any_of(term, lambda value: _equal(of, value))
    return Q(_COMPARE[term.sign](of.expression, term.values[0]))


def _any_of(term: Term, each: Callable[[Any], Q]) -> Q:
    return reduce(or_, (each(value) for value in term.values))


def _equal(of: RunField, value: Any) -> Q:
    if value is None:
        return Q(IsNull(of.expression, True))
    if isinstance(value, float) and not value.is_integer():
        # As near as two readings of the same decimal text come.
        low, high = sorted((value * (1 - 1e-12), value * (1 + 1e-12)))
        return Q(GreaterThanOrEqual(of.expression, low)) & Q(LessThanOrEqual(of.expression, high))
    return Q(Exact(of.expression, value))


def _at(of: RunField, sign: str, moments: tuple[datetime, datetime] | None) -> Q:
    if moments is None:
        return Q(IsNull(of.expression, True))
    start, end = moments
    since, before = Q(GreaterThanOrEqual(of.expression, start)), Q(LessThan(of.expression, end))
    return {
        ":": since & before,
        "<": Q(LessThan(of.expression, start)),
        "<=": before,
        ">": Q(GreaterThanOrEqual(of.expression, end)),
        ">=": since,
    }[sign]


def _has_tag(term: Term) -> Q:
    tags = JobTag.objects.filter(job=OuterRef("pk"))
    if term.sign == "~":
        return Q(Exists(tags.filter(name__icontains=term.values[0])))
    names = [value for value in term.values if value is not None]
    found = Q(Exists(tags.filter(name__in=names)))
    return found | ~Q(Exists(tags)) if None in term.values else found


def _has_word(word: str) -> Q:
    """A job by its number, or by a part of its name, model, data set or owner."""
    number = word.removeprefix("#")
    is_number = number.isascii() and number.isdigit() and len(number) < 19
    if is_number and word.startswith("#"):
        return Q(pk=int(number))
    parts = ("name", "model", "dataset", "owner__username")
    found = reduce(or_, (Q(**{f"{part}__icontains": word}) for part in parts))
    return found | Q(pk=int(number)) if is_number else found
