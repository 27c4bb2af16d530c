"""What narrows the runs list: menus of the common fields, the terms as chips, ways out of nothing."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from django.utils.translation import gettext

from jobs.forms import RunListAddress
from jobs.models import TeamTag, User
from jobs.models.job import STATE_LABELS
from jobs.selectors.hosts import known_catalog
from jobs.selectors.jobs import teams_of
from jobs.selectors.run_fields import run_fields
from jobs.selectors.run_pages import RunList, parse_order
from jobs.selectors.run_query import ME, parse_query, quoted

_MOST_IN_A_MENU = 40
_MOST_RELAXED = 6


@dataclass(frozen=True)
class Choice:
    """One entry of a menu: clicked, it narrows the list, or widens it where it is chosen already."""

    text: str
    link: str
    is_chosen: bool


@dataclass(frozen=True)
class Menu:
    """The common values of one field."""

    name: str
    title: str
    is_used: bool  # the list is narrowed by it


@dataclass(frozen=True)
class Removable:
    """A part of the query, and the address without it."""

    text: str
    link: str
    count: int = 0


def filter_menus(address: RunListAddress) -> list[Menu]:
    """Menus of what lists are narrowed by most; what stands in one is read when it is opened."""
    fields = run_fields()
    return [Menu(name, gettext(str(fields[name].label)), bool(address.query.given(name))) for name in _COMMON]


def menu_choices(address: RunListAddress, name: str, user: User) -> list[Choice]:
    """What stands in the menu of a field; raises `KeyError` where it has none."""
    chosen, choices = address.query.given(name), []
    for value, text in _COMMON[name](user).items():
        is_chosen = value in chosen
        narrowed = address.query.replacing(name, "" if is_chosen else f"{name}:{quoted(value)}")
        choices.append(Choice(text, address.link(q=narrowed), is_chosen))
    return choices


def _states(_user: User) -> dict[str, str]:
    groups = {"open": gettext("Open"), "ended": gettext("Ended"), "trouble": gettext("In trouble")}
    return groups | {state.value: str(label) for state, label in STATE_LABELS.items()}


def _models(_user: User) -> dict[str, str]:
    return _as_they_are(info.name for info in known_catalog().models)


def _devices(_user: User) -> dict[str, str]:
    return _as_they_are(run_fields()["device"].choices)


def _precisions(_user: User) -> dict[str, str]:
    return _as_they_are(run_fields()["precision"].choices)


def _owners(user: User) -> dict[str, str]:
    people = User.objects.filter(teams__in=teams_of(user)).distinct().order_by("username")
    return {ME: gettext("Me")} | _as_they_are(people.values_list("username", flat=True)[:_MOST_IN_A_MENU])


def _teams(user: User) -> dict[str, str]:
    return _as_they_are(teams_of(user).order_by("name").values_list("name", flat=True)[:_MOST_IN_A_MENU])


def _tags(user: User) -> dict[str, str]:
    tags = TeamTag.objects.filter(team__in=teams_of(user)).order_by("name").values_list("name", flat=True).distinct()
    return _as_they_are(tags[:_MOST_IN_A_MENU])


def _as_they_are(values: Iterable[str]) -> dict[str, str]:
    return {value: value for value in values}


# What lists are narrowed by most: the values of a field that a person may choose from, with their words.
_COMMON: dict[str, Callable[[User], dict[str, str]]] = {
    "state": _states,
    "model": _models,
    "device": _devices,
    "precision": _precisions,
    "owner": _owners,
    "team": _teams,
    "tag": _tags,
}


def removable_terms(address: RunListAddress) -> list[Removable]:
    """Every term as a chip that can be taken away."""
    terms = address.query.terms
    return [Removable(term.text, address.link(q=str(address.query.without(term)))) for term in terms]


def relaxations(address: RunListAddress, user: User) -> list[Removable]:
    """Terms without which something would be found, and how much."""
    query = address.query
    if query.problems or not 0 < len(query.terms) <= _MOST_RELAXED:
        return []
    found = []
    for term in query.terms:
        rest = query.without(term)
        count = RunList(parse_query(str(rest)), parse_order("-id"), user).count
        if count:
            found.append(Removable(term.text, address.link(q=str(rest)), count))
    return found
