"""Query parameters: each endpoint's are one class, and a parameter that it does not have is an error."""

from typing import Self

from ninja import Schema
from pydantic import ValidationInfo, model_validator

from jobs.api.errors import InvalidRequest
from jobs.contract.findings import Finding, Severity
from jobs.contract.messages import gettext_noop as _


class Query(Schema):
    """The parameters of one endpoint; ninja hands the request to the validator as its context."""

    @model_validator(mode="after")
    def only_known_parameters(self, info: ValidationInfo) -> Self:
        """A mistyped filter must not silently select everything."""
        given = info.context["request"].GET if info.context else {}
        unknown = [name for name in given if name not in type(self).model_fields]
        unreadable = [name for name, value in given.items() if "\0" in value]
        findings = [_refuse(name, "extra_forbidden", _("There is no such parameter.")) for name in unknown]
        findings += [_refuse(name, "null_character", _("Must not hold a null character.")) for name in unreadable]
        if findings:
            raise InvalidRequest(findings)
        return self


def _refuse(field: str, code: str, message: str) -> Finding:
    return Finding(code=code, field=field, severity=Severity.REFUSE, message=message)
