"""What narrows the runs list: menus of the common fields, the terms as chips, ways out of nothing."""

from collections.abc import Iterable
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
    choices: list[Choice]

    @property
    def is_used(self) -> bool:
        """Whether the list is narrowed by it."""
        return any(choice.is_chosen for choice in self.choices)


@dataclass(frozen=True)
class Removable:
    """A part of the query, and the address without it."""

    text: str
    link: str
    count: int = 0


def filter_menus(address: RunListAddress, user: User) -> list[Menu]:
    """Menus of what lists are narrowed by most; one without a choice is left out."""
    menus = [_menu(address, name, texts) for name, texts in _common_values(user).items()]
    return [menu for menu in menus if len(menu.choices) > 1 or menu.is_used]


def _common_values(user: User) -> dict[str, dict[str, str]]:
    """Words by value, by field."""
    fields, teams = run_fields(), teams_of(user)
    people = User.objects.filter(teams__in=teams).distinct().order_by("username").values_list("username", flat=True)
    tags = TeamTag.objects.filter(team__in=teams).order_by("name").values_list("name", flat=True).distinct()
    groups = {"open": gettext("Open"), "ended": gettext("Ended"), "trouble": gettext("In trouble")}
    return {
        "state": groups | {state.value: str(label) for state, label in STATE_LABELS.items()},
        "model": _as_they_are(info.name for info in known_catalog().models),
        "device": _as_they_are(fields["device"].choices),
        "precision": _as_they_are(fields["precision"].choices),
        "owner": {ME: gettext("Me")} | _as_they_are(people[:_MOST_IN_A_MENU]),
        "team": _as_they_are(teams.order_by("name").values_list("name", flat=True)[:_MOST_IN_A_MENU]),
        "tag": _as_they_are(tags[:_MOST_IN_A_MENU]),
    }


def _as_they_are(values: Iterable[str]) -> dict[str, str]:
    return {value: value for value in values}


def _menu(address: RunListAddress, name: str, texts: dict[str, str]) -> Menu:
    chosen = address.query.given(name)
    choices = []
    for value, text in texts.items():
        is_chosen = value in chosen
        narrowed = address.query.replacing(name, "" if is_chosen else f"{name}:{quoted(value)}")
        choices.append(Choice(text, address.link(q=narrowed), is_chosen))
    title = run_fields()[name].label
    return Menu(name, gettext(title) if isinstance(title, str) else str(title), choices)


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
