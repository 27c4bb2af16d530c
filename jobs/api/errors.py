"""What goes wrong, in one shape: `{"errors": [{"field", "code", "message"}]}`."""

from collections.abc import Iterable

from django.core.exceptions import ValidationError as DjangoValidationError
from django.utils.translation import gettext
from ninja import Schema
from pydantic import ValidationError as PydanticValidationError

from jobs.contract.errors import PitwallError
from jobs.contract.findings import Finding, Severity, findings_from_validation
from jobs.messages import translate


class ErrorOut(Schema):
    """One thing to put right; `field` is empty where it is about the request as a whole."""

    field: str
    code: str
    message: str


class ErrorsOut(Schema):
    """Everything to put right, one entry per field."""

    errors: list[ErrorOut]


class InvalidRequest(PitwallError):
    """A parameter or body that cannot be read, or names something that is not there."""

    def __init__(self, findings: list[Finding]) -> None:
        self.findings = findings
        super().__init__(" ".join(f"{finding.field}: {finding.sentence}" for finding in findings))


def refusal(field: str, code: str, message: str, **params: object) -> InvalidRequest:
    """One refused field; `message` is a message id with places for `params`."""
    return InvalidRequest(
        [Finding(code=code, field=field, severity=Severity.REFUSE, message=message, params=dict(params))]
    )


def errors_of_findings(findings: Iterable[Finding]) -> ErrorsOut:
    """Findings in the reader's language, the first of each field."""
    first: dict[str, Finding] = {}
    for finding in findings:
        first.setdefault(finding.field, finding)
    return ErrorsOut(
        errors=[
            ErrorOut(field=field, code=finding.code, message=translate(finding)) for field, finding in first.items()
        ]
    )


def errors_of_models(error: DjangoValidationError) -> ErrorsOut:
    """What a model's `full_clean` refused."""
    return ErrorsOut(
        errors=[
            ErrorOut(field=field, code="invalid", message=" ".join(messages))
            for field, messages in error.message_dict.items()
        ]
    )


def single_error(code: str, message: str, field: str = "") -> ErrorsOut:
    """One sentence about the request as a whole."""
    return ErrorsOut(errors=[ErrorOut(field=field, code=code, message=gettext(message))])


def findings_of_request(error: PydanticValidationError) -> list[Finding]:
    """Refusals of parameters or of a body; the outermost place, ninja's own name for the argument, is dropped."""
    findings = []
    for finding in findings_from_validation(error):
        _argument, _, field = finding.field.partition(".")
        findings.append(finding.model_copy(update={"field": field or "spec"}))
    return findings
