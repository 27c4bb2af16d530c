"""What is answered where something broke: a page in words; 503 where it is the database that is away."""

import sys

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import loader
from django.utils.translation import gettext

_TRY_AGAIN_S = 5


def server_error(request: HttpRequest) -> HttpResponse:
    """Django calls it while the exception is being handled."""
    is_database_away = isinstance(sys.exc_info()[1], OperationalError | InterfaceError)
    status = 503 if is_database_away else 500
    response = _api_answer(is_database_away) if request.path.startswith("/api/") else _page(status)
    response.status_code = status
    if is_database_away:
        response["Retry-After"] = str(_TRY_AGAIN_S)
    return response


def _page(status: int) -> HttpResponse:
    """A page that asks nothing of the database, not even who is looking."""
    return HttpResponse(loader.get_template(f"{status}.html").render())


def _api_answer(is_database_away: bool) -> HttpResponse:
    message = gettext("The database is away. Try again.") if is_database_away else gettext("The fault is ours.")
    code = "database_away" if is_database_away else "fault"
    return JsonResponse({"errors": [{"field": "", "code": code, "message": message}]})
