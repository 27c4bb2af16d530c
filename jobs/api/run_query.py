"""The parameters of the API's list as one query of runs."""

from datetime import UTC, datetime
from enum import Enum
from typing import Any

from pydantic import BaseModel

from jobs.api.errors import InvalidRequest, refusal
from jobs.contract.findings import Finding, Severity
from jobs.contract.messages import gettext_noop as _
from jobs.contract.spec import TrainSpec
from jobs.models import User
from jobs.selectors.run_fields import run_fields
from jobs.selectors.run_pages import BadCursor, Order, RunList, UnknownOrder, order_names, parse_order
from jobs.selectors.run_query import NotUnderstood, RunQuery, Term, make_term, parse_query

_EXACT = ("state", "outcome", "owner", "team", "queue", "tag", "device_name", "origin")


def query_of(asked: BaseModel) -> RunQuery:
    """All that narrows the list, whichever parameter it came by; raises `InvalidRequest` for what is not understood."""
    text = parse_query(getattr(asked, "q", ""))
    if text.problems:
        raise _not_understood("q", text.problems)
    given = asked.model_dump(exclude_none=True)
    terms = [
        _term(name, given[name]) for name in (*TrainSpec.model_fields, *_EXACT) if given.get(name) not in (None, "")
    ]
    bounds = {"created_after": ">=", "created_before": "<"}
    terms += [_bound(sign, given[name]) for name, sign in bounds.items() if name in given]
    return RunQuery((*text.terms, *terms))


def _not_understood(field: str, sentences: tuple[str, ...]) -> InvalidRequest:
    return InvalidRequest(
        [Finding(code="not_understood", field=field, severity=Severity.REFUSE, message=" ".join(sentences))]
    )


def _term(name: str, value: Any) -> Term:
    of = run_fields()[name]
    plain = value.value if isinstance(value, Enum) else value
    if name not in TrainSpec.model_fields:
        try:
            return make_term(of, ":", [plain])
        except NotUnderstood as error:
            raise _not_understood(name, (str(error),)) from error
    return Term(of, ":", (float(plain) if isinstance(plain, int | float) else plain,), "")


def _bound(sign: str, moment: datetime) -> Term:
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return Term(run_fields()["created"], sign, ((moment, moment),), "")


def order_of(text: str) -> Order:
    """The order of that name; raises `InvalidRequest` for `order_by`."""
    try:
        return parse_order(text)
    except UnknownOrder as error:
        names = ", ".join(order_names())
        message = _("There is no order by that. A minus sign sorts downwards. There are: %(names)s.")
        raise refusal("order_by", "enum", message, names=names) from error


def page_of(query: RunQuery, order: Order, user: User, limit: int, cursor: str) -> tuple[list[int], str | None, int]:
    """Numbers of one page's jobs, the next page's cursor, and how many match; raises `InvalidRequest` for `cursor`."""
    runs = RunList(query, order, user)
    try:
        return *runs.page(limit, cursor), runs.count
    except BadCursor as error:
        message = _("This is no cursor of this list. Take `next_cursor` from the page before.")
        raise refusal("cursor", "bad_cursor", message) from error
