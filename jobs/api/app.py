"""The API object: errors in one shape, and documentation that only people who are signed in may read."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import ValidationError as DjangoValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext_noop as _
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError, ValidationErrorContext
from ninja.openapi.docs import Swagger
from ninja.operation import Operation

from jobs.api.auth import AUTHENTICATION
from jobs.api.errors import (
    ErrorsOut,
    InvalidRequest,
    errors_of_findings,
    errors_of_models,
    findings_of_request,
    single_error,
)
from jobs.api.render import render_json
from jobs.contract.errors import InvalidSpec
from jobs.services.errors import NotAllowed, NotPossible, SpecRefused

__all__ = ["PitwallAPI", "Swagger", "sign_in_for_docs"]

_NOT_SIGNED_IN = _("Sign in, or send a personal token in the header “Authorization: Bearer”.")
_SENTENCES = {
    400: _("The request's body is not valid JSON."),
    403: _("The CSRF token is missing or wrong."),
    404: _("There is nothing here, or it is not yours to see."),
}


class PitwallAPI(NinjaAPI):
    """ninja's API with every error in our shape."""

    def set_default_exception_handlers(self) -> None:
        """Each exception that a request may end in, with its answer."""
        super().set_default_exception_handlers()
        self.add_exception_handler(AuthenticationError, self._not_signed_in)
        self.add_exception_handler(HttpError, self._http_error)
        self.add_exception_handler(Http404, self._not_found)
        self.add_exception_handler(InvalidRequest, self._refused)
        self.add_exception_handler(InvalidSpec, self._refused)
        self.add_exception_handler(SpecRefused, self._refused)
        self.add_exception_handler(DjangoValidationError, self._model_refused)
        self.add_exception_handler(NotPossible, self._not_possible)
        self.add_exception_handler(NotAllowed, self._not_allowed)

    def validation_error_from_error_contexts(
        self, error_contexts: list[ValidationErrorContext[Any]]
    ) -> ValidationError:
        """Findings instead of pydantic's raw errors; ninja calls this where parameters or a body do not validate."""
        raise InvalidRequest(
            [
                finding
                for context in error_contexts
                for finding in findings_of_request(context.pydantic_validation_error)
            ]
        )

    def get_openapi_operation_id(self, operation: Operation) -> str:
        """The endpoint's own name, which generated clients call."""
        name: str = operation.view_func.__name__
        return name

    def _not_signed_in(self, request: HttpRequest, _error: Any) -> HttpResponse:
        response = self._answer(request, single_error("not_signed_in", _NOT_SIGNED_IN), 401)
        response["WWW-Authenticate"] = "Bearer"
        return response

    def _http_error(self, request: HttpRequest, error: Any) -> HttpResponse:
        message = _SENTENCES.get(error.status_code, error.message)
        return self._answer(request, single_error("bad_request", message), error.status_code)

    def _not_found(self, request: HttpRequest, _error: Any) -> HttpResponse:
        return self._answer(request, single_error("not_found", _SENTENCES[404]), 404)

    def _refused(self, request: HttpRequest, error: Any) -> HttpResponse:
        return self._answer(request, errors_of_findings(error.findings), 422)

    def _model_refused(self, request: HttpRequest, error: Any) -> HttpResponse:
        return self._answer(request, errors_of_models(error), 422)

    def _not_possible(self, request: HttpRequest, error: Any) -> HttpResponse:
        return self._answer(request, single_error("not_possible", str(error)), 409)

    def _not_allowed(self, request: HttpRequest, error: Any) -> HttpResponse:
        return self._answer(request, single_error("not_allowed", str(error)), 403)

    def _answer(self, request: HttpRequest, errors: ErrorsOut, status: int) -> HttpResponse:
        return self.create_response(request, errors.model_dump(), status=status)


def sign_in_for_docs(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """The documentation is for users: a page without one leads to sign-in, the schema answers 401."""

    @wraps(view, assigned=())
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            if any(authenticate(request) for authenticate in AUTHENTICATION):
                return view(request, *args, **kwargs)
        except AuthenticationError:
            pass
        if not request.path.endswith(".json"):
            return redirect_to_login(request.get_full_path())
        answer = single_error("not_signed_in", _NOT_SIGNED_IN).model_dump()
        return HttpResponse(render_json(answer), status=401, content_type="application/json")

    return guarded
